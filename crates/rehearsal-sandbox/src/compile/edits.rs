//! Texts inserted into the source before it is transformed, and the way back to offsets without them.

/// Insertions in ascending order of their offset in the original text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Edits {
    insertions: Vec<(u32, String)>,
}

impl Edits {
    /// Inserts `text` before the byte at `offset` of the original; a later insertion at the same offset comes behind.
    pub(crate) fn insert(&mut self, offset: u32, text: &str) {
        let after = self.insertions.partition_point(|(other, _)| *other <= offset);
        self.insertions.insert(after, (offset, text.to_owned()));
    }

    /// Inserts `text` behind what ends at `offset`; a later insertion at the same offset comes before, because it ends an
    /// inner part.
    pub(crate) fn insert_end(&mut self, offset: u32, text: &str) {
        let before = self.insertions.partition_point(|(other, _)| *other < offset);
        self.insertions.insert(before, (offset, text.to_owned()));
    }

    /// The source with all insertions.
    pub(crate) fn apply(&self, source: &str) -> String {
        let mut edited = String::with_capacity(source.len() + 32);
        let mut from = 0;
        for (offset, text) in &self.insertions {
            edited.push_str(&source[from..*offset as usize]);
            edited.push_str(text);
            from = *offset as usize;
        }
        edited.push_str(&source[from..]);
        edited
    }

    /// The offset in the original for an offset in the edited text; inside an insertion, where it was inserted.
    pub(crate) fn original(&self, edited: u32) -> u32 {
        let mut inserted = 0;
        for (offset, text) in &self.insertions {
            if offset + inserted > edited {
                break;
            }
            if edited < offset + inserted + text.len() as u32 {
                return *offset;
            }
            inserted += text.len() as u32;
        }
        edited - inserted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lead_back_across_insertions() {
        let mut edits = Edits::default();
        edits.insert(2, "return (");
        edits.insert(5, ")");
        let edited = edits.apply("a;b+c;");
        assert_eq!(edited, "a;return (b+c);");
        let back = |text: &str| edits.original(edited.find(text).unwrap() as u32);
        assert_eq!((back("a"), back("return"), back("turn"), back("b"), back("c"), back(");")), (0, 2, 2, 2, 4, 5));
        assert_eq!(edits.original(edited.len() as u32), 6);
    }
}
