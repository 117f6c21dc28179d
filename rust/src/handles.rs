// SPDX-License-Identifier: LGPL-2.1 OR MIT
//! Names of the program's objects that outlive them safely.

/// A table of objects, each with a token that is never used again.
///
/// An event in the ring outlives its watch, so an event may arrive for an object that
/// is gone. Its token finds nothing then, whatever took the place since.
///
/// ```
/// let mut table = kevent::Handles::new();
/// let token = table.insert("first");
/// assert_eq!(table.remove(token), Some("first"));
/// let other = table.insert("second");
/// assert_eq!(table.get(token), None);
/// assert_eq!(table.get(other), Some(&"second"));
/// ```
///
/// A place is left unused once its 2^32 - 1 tokens are used up.
#[derive(Clone, Debug)]
pub struct Handles<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Place<T> {
    generation: u32,
    object: Option<T>,
}

/// Index and generation. The generation is never 0.
fn split(token: u64) -> (usize, u32) {
    (token as u32 as usize, (token >> 32) as u32)
}

impl<T> Default for Handles<T> {
    fn default() -> Handles<T> {
        Handles::new()
    }
}

impl<T> Handles<T> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Handles<T> {
        Handles { places: Vec::new(), free: Vec::new() }
    }

    /// Keeps an object and returns its token, which is never less than 2^32:
    /// smaller numbers are free for other uses.
    ///
    /// # Panics
    ///
    /// When the table has 2^32 places.
    pub fn insert(&mut self, object: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            let index = u32::try_from(self.places.len()).expect("too many objects");
            self.places.push(Place { generation: 1, object: None });
            index
        });
        let place = &mut self.places[index as usize];
        place.object = Some(object);
        u64::from(place.generation) << 32 | u64::from(index)
    }

    fn place(&self, token: u64) -> Option<&Place<T>> {
        let (index, generation) = split(token);
        self.places.get(index).filter(|place| place.generation == generation)
    }

    /// The object of a token, unless it was removed.
    #[must_use]
    pub fn get(&self, token: u64) -> Option<&T> {
        self.place(token)?.object.as_ref()
    }

    /// The object of a token, to change it.
    pub fn get_mut(&mut self, token: u64) -> Option<&mut T> {
        let (index, generation) = split(token);
        let place = self.places.get_mut(index)?;
        place.object.as_mut().filter(|_| place.generation == generation)
    }

    /// Takes an object out. Events that still arrive with its token have none.
    pub fn remove(&mut self, token: u64) -> Option<T> {
        let (index, generation) = split(token);
        let place = self.places.get_mut(index)?;
        if place.generation != generation {
            return None;
        }
        let object = place.object.take()?;
        place.generation = place.generation.wrapping_add(1);
        if place.generation != 0 {
            self.free.push(index as u32);
        }
        Some(object)
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.iter().filter(|place| place.object.is_some()).count()
    }

    /// Is there no object?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.iter().all(|place| place.object.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_used_again() {
        let mut table = Handles::new();
        let mut old: Vec<u64> = Vec::new();
        for n in 0..100 {
            let token = table.insert(n);
            assert!(!old.contains(&token) && token >= 1 << 32);
            assert!(old.iter().all(|&token| table.get(token).is_none()));
            // Nor does an old one change what took the place
            assert!(old.iter().all(|&token| table.get_mut(token).is_none()));
            assert!(old.iter().all(|&token| table.remove(token).is_none()));
            assert_eq!(table.remove(token), Some(n));
            assert_eq!(table.remove(token), None);
            old.push(token);
        }
        assert_eq!(table.places.len(), 1);
    }

    #[test]
    fn objects_keep_their_tokens() {
        let mut table = Handles::new();
        let tokens: Vec<u64> = (0..50).map(|n| table.insert(n)).collect();
        tokens
            .iter()
            .step_by(2)
            .for_each(|&token| assert!(table.remove(token).is_some()));
        assert_eq!(table.len(), 25);
        table.insert(1000);
        for (n, &token) in tokens.iter().enumerate() {
            assert_eq!(table.get(token), Some(&n).filter(|n| *n % 2 == 1));
        }
        *table.get_mut(tokens[1]).unwrap() = 7;
        assert_eq!(table.get(tokens[1]), Some(&7));
        assert!(table.get_mut(tokens[0]).is_none());
    }

    #[test]
    fn a_place_whose_tokens_are_used_up_is_left_alone() {
        let mut table = Handles::new();
        let token = table.insert(());
        table.remove(token);
        table.places[0].generation = u32::MAX;
        let last = table.insert(());
        assert_eq!(split(last), (0, u32::MAX));
        table.remove(last);
        assert_eq!(split(table.insert(())), (1, 1));
        assert!(table.get(0).is_none() && table.get(last).is_none());
    }

    #[test]
    fn any_number_may_be_asked_for() {
        let mut table: Handles<()> = Handles::default();
        assert!(table.is_empty());
        for token in [0, 1, 1 << 32, u64::MAX] {
            assert!(table.get(token).is_none() && table.remove(token).is_none());
            assert!(table.get_mut(token).is_none());
        }
    }
}
