# SPDX-License-Identifier: GPL-2.0
# What the Makefiles of programs for the VM share. One that includes this sets
#
# FOLDER   the folder below tests with its sources; objects go to $(BUILD)/guest/$(FOLDER)
# NAME     of the program, which goes to $(BUILD)/guest
# MORE     objects whose rules it has itself, if there are any
# LIB      libraries, with = rather than :=, because BUILD is set here
# TARGET   asan: for this machine, with gcc's sanitizers, $(NAME)-asan; empty for others

TOP	:= $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
BUILD	?= $(TOP)/build
override BUILD := $(abspath $(BUILD))
include $(TOP)/libkevent/odd.mk
$(call refuse-odd,BUILD TOP)
SRC	:= $(TOP)/tests/$(FOLDER)
OBJ	:= $(BUILD)/guest$(TARGET:%=/%)/$(FOLDER)
PROGRAM	:= $(BUILD)/guest/$(NAME)$(TARGET:%=-%)
RULES	:= $(SRC)/Makefile $(TOP)/tests/program.mk

CFLAGS	?= -O2 -g
# A sanitizer's library has to be a shared one.
STATIC	:= -static
ifeq ($(TARGET),asan)
CFLAGS	+= -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
STATIC	:=
endif
WARN	:= -std=gnu11 -Wall -Wextra -Werror -fmacro-prefix-map=$(TOP)/=
CPPFLAGS += -I$(BUILD)/include
OBJS	:= $(patsubst $(SRC)/%.c,$(OBJ)/%.o,$(sort $(wildcard $(SRC)/*.c))) \
	$(addprefix $(OBJ)/,$(MORE))

.DEFAULT_GOAL := all
all: $(PROGRAM)

$(PROGRAM): $(OBJS) $(LIB)
	@echo "guest: $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) $(STATIC) -pthread -o $@ $(OBJS) $(LIB)

$(OBJ)/%.o: $(SRC)/%.c $(RULES) | $(OBJ)
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(WARN) -pthread -MMD -MP -c -o $@ $<

$(OBJ):
	@mkdir -p $@

clean:
	rm -rf $(PROGRAM) $(OBJ)

.PHONY: all clean
.DELETE_ON_ERROR:

-include $(OBJS:.o=.d)
