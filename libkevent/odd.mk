# SPDX-License-Identifier: LGPL-2.1 OR MIT
#
# $(call refuse-odd,VARIABLES[,WORDS]) ends make, with these words, if a folder that one of the
# variables names has a character that make, a shell, Linux or QEMU may take for something else.
# Recipes have names as they are, and remove what they name.

odd = $(shell [ "$$(printf '%s/' $(foreach name,$(1),'$(subst ','\'',$($(name)))') : | \
	LC_ALL=C tr -d '0-9A-Za-z._/+@=~\200-\377-')" = : ] || echo odd)
refuse-odd = $(if $(call odd,$(1)),$(error a folder has a character in its name that is no \
	letter, no digit and none of ._/+@=~-: $(foreach name,$(1),$(name)=$($(name)))$(2)))
