//! Another value in place of an invented one.

use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};

use rehearsal_core::matcher::Schema;
use serde_json::{Map, Value, json};

use super::constraints::{Constraints, Facts};
use super::dice::{Dice, seed_below};
use super::number::{NumberGoal, vary_number};
use super::text::{Growth, vary_text};

/// Validations of one value: this many bytes of it in all, but at least and at most so many times.
const VALIDATED_BYTES: usize = 1 << 18;
const MIN_VALIDATIONS: usize = 4;
const MAX_VALIDATIONS: usize = 200;
/// Maximum number of values of one place that are changed one by one, if they cannot be changed together.
const MAX_SINGLES: usize = 200;
/// Maximum number of values of one alternate that the generator of examples is used for.
const MAX_EXAMPLES: usize = 16;
/// Maximum number of ways to change a value at one place that are tried.
const MAX_WAYS: usize = 8;
/// Minimum number of elements of a longer array.
const LONGER_ARRAY: usize = 3;
/// Maximum number of values that longer arrays add.
const MAX_ADDED: usize = 50_000;
/// Maximum length of a string that is read as JSON.
const MAX_JSON_TEXT: usize = 1 << 16;

/// A way in which invented values are replaced in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::dry_run) enum Alternate {
    /// Other strings and numbers. Lengths of arrays, booleans and members of enums stay, so that the calls stay comparable.
    Near,
    /// Longer arrays, large numbers, the other boolean, the next member of an enum, longer strings, optional members
    /// present. The elements that make an array longer are near variations of the others.
    More,
    /// Empty arrays, `""` and 0, `false`, the previous member of an enum, no optional members, `null` where it is allowed.
    Less,
    /// Strings and numbers that the plan compares with: the value at this index first, the next for the next leaf. A number
    /// is followed by its neighbours.
    Compared(usize),
}

/// The number of indexes after which [`Alternate::Compared`] gives every leaf each value that fits it.
pub(in crate::dry_run) fn compared_rounds(compared: &[Value]) -> usize {
    let compared = Compared::new(compared);
    compared.texts.len().max(compared.numbers.len())
}

/// Another value in place of an invented one, valid against the same schema if there is one. The same arguments give the
/// same value; if nothing can change, it is `value`.
///
/// `schema` is the schema as the server listed it, and compiled. Without one only the types of JSON are kept. `salt` differs
/// for each call: in [`Alternate::Near`] each string and, if the schema allows it, each number is found in no other call.
pub(in crate::dry_run) fn alternate(
    value: &Value,
    schema: Option<(&Value, &Schema)>,
    alternate: Alternate,
    compared: &[Value],
    salt: u64,
) -> Value {
    let compared_values = Compared::new(compared);
    if value.is_null() && schema.is_none() {
        return for_unknown(alternate, compared, salt);
    }
    let mut search = Search {
        alternate,
        compared: &compared_values,
        salt,
        compiled: schema.map(|(_, compiled)| compiled),
        places: Vec::new(),
        valid: None,
        examples: Cell::new(MAX_EXAMPLES),
        validations: MIN_VALIDATIONS,
    };
    let root = search.add_place(schema.map(|(raw, _)| Constraints::of_root(raw)));
    let size = search.survey(value, root, salt);
    search.validations = (VALIDATED_BYTES / size.max(1)).clamp(MIN_VALIDATIONS, MAX_VALIDATIONS);
    search.find(value)
}

/// In place of a result of which the plan shows no type: a value that is no `null`.
fn for_unknown(alternate: Alternate, compared: &[Value], salt: u64) -> Value {
    let text = |growth| Value::from(vary_text("text", &mut Dice::new(salt), growth, usize::MAX));
    match alternate {
        Alternate::Near => text(Growth::Unique),
        Alternate::More => text(Growth::Longer),
        Alternate::Less => Value::Null,
        Alternate::Compared(index) => compared.get(index % compared.len().max(1)).cloned().unwrap_or(Value::Null),
    }
}

/// The strings and the numbers that a plan compares with.
struct Compared {
    texts: Vec<Value>,
    /// The numbers, then those next to them, so that `>` and `<` have both results, too.
    numbers: Vec<Value>,
}

impl Compared {
    fn new(values: &[Value]) -> Compared {
        let mut numbers: Vec<Value> = Vec::new();
        for distance in [0, 1, -1] {
            for number in values.iter().filter_map(Value::as_number) {
                let neighbour = match number.as_i64() {
                    Some(whole) => whole.checked_add(distance).map(Value::from),
                    None => number.as_f64().map(|fraction| json!(fraction + distance as f64)),
                };
                numbers.extend(neighbour.filter(|neighbour| !numbers.contains(neighbour)));
            }
        }
        Compared { texts: values.iter().filter(|value| value.is_string()).cloned().collect(), numbers }
    }
}

/// A place of a value; all elements of an array are at one place, except those of a tuple.
#[derive(Default)]
struct Place<'s> {
    constraints: Option<Constraints<'s>>,
    facts: Facts,
    members: HashMap<String, usize>,
    tuple: Vec<usize>,
    element: Option<usize>,
    /// The seeds of the first values at this place.
    seeds: Vec<u64>,
    /// The first value of each type at this place; of objects and arrays only the type.
    samples: Vec<Value>,
    /// Optional members that some object at this place lacks.
    missing: Vec<(String, Value)>,
    /// An element for the arrays at this place that have none.
    first_element: Option<Value>,
    /// Another value that the generator of examples found.
    example: OnceCell<Option<Value>>,
    /// The accepted changes: which way, from 0, and how far.
    chosen: [Option<(usize, Extent)>; Change::COUNT],
}

/// A kind of change at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    /// The member is left out.
    Absent,
    /// The value is `null`.
    Null,
    /// A string, number or boolean is another one.
    Leaf,
    /// An array has another length.
    Length,
    /// Missing members are added.
    Present,
}

impl Change {
    const COUNT: usize = Change::Present as usize + 1;
}

/// How far a change is applied.
#[derive(Clone, Debug)]
enum Extent {
    /// To all values of the place.
    All,
    /// To the values with these seeds.
    Some(HashSet<u64>),
}

/// One way to change a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Text(Growth),
    EmptyText,
    Number(NumberGoal),
    /// The member of the enum that is this many places further.
    Choice(isize),
    Flipped,
    False,
    /// The compared value that is this many places further.
    Compared(usize),
    /// What the generator of examples finds.
    Example,
}

/// A change at a place.
type Unit = (usize, Change);

/// The search for the changes that leave a value valid.
struct Search<'a, 's> {
    alternate: Alternate,
    compared: &'a Compared,
    salt: u64,
    compiled: Option<&'a Schema>,
    places: Vec<Place<'s>>,
    /// The value with the accepted changes, once there are some.
    valid: Option<Value>,
    examples: Cell<usize>,
    /// How many validations are left.
    validations: usize,
}

/// What is counted while a value is built.
#[derive(Default)]
struct Counts {
    used_numbers: HashSet<u64>,
    /// Hashes of the changed strings.
    used_texts: HashSet<u64>,
    /// The number of strings and numbers so far.
    texts: usize,
    numbers: usize,
    /// The number of values that longer arrays added.
    added: usize,
}

impl<'s> Search<'_, 's> {
    fn add_place(&mut self, constraints: Option<Constraints<'s>>) -> usize {
        let facts = constraints.as_ref().map(Constraints::facts).unwrap_or_default();
        self.places.push(Place { constraints, facts, ..Place::default() });
        self.places.len() - 1
    }

    fn member_place(&mut self, place: usize, name: &str) -> usize {
        if let Some(known) = self.places[place].members.get(name) {
            return *known;
        }
        let constraints = self.places[place].constraints.as_ref().map(|constraints| constraints.member(name));
        let added = self.add_place(constraints);
        self.places[place].members.insert(name.to_owned(), added);
        added
    }

    fn element_place(&mut self, place: usize, index: usize) -> usize {
        if let Some(known) = self.places[place].element_at(index) {
            return known;
        }
        let here = &self.places[place];
        let in_tuple = index < here.facts.tuple_length;
        let constraints = here.constraints.as_ref().map(|constraints| constraints.element(index));
        let added = self.add_place(constraints);
        match in_tuple {
            true => self.places[place].tuple.push(added),
            false => self.places[place].element = Some(added),
        }
        added
    }

    /// Finds the places of a value, and returns about how many bytes of JSON it has.
    fn survey(&mut self, value: &Value, place: usize, seed: u64) -> usize {
        let here = &mut self.places[place];
        if here.seeds.len() < MAX_SINGLES {
            here.seeds.push(seed);
        }
        let kind = std::mem::discriminant(value);
        if !here.samples.iter().any(|sample| std::mem::discriminant(sample) == kind) {
            here.samples.push(match value {
                Value::Object(_) => json!({}),
                Value::Array(_) => json!([]),
                leaf => leaf.clone(),
            });
        }
        match value {
            Value::Object(members) => {
                let mut size = 2;
                for (name, member) in members {
                    let place = self.member_place(place, name);
                    size += name.len() + 4 + self.survey(member, place, seed_below(seed, name.as_bytes()));
                }
                self.find_missing(members, place);
                size
            }
            Value::Array(elements) => {
                let mut size = 2;
                for (index, element) in elements.iter().enumerate() {
                    let place = self.element_place(place, index);
                    size += 1 + self.survey(element, place, seed_below(seed, &index.to_le_bytes()));
                }
                if elements.is_empty() {
                    self.find_first_element(place, seed);
                }
                size
            }
            Value::String(text) => text.len() + 2,
            Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        }
    }

    /// Finds values for the optional members that an object lacks.
    fn find_missing(&mut self, members: &Map<String, Value>, place: usize) {
        let Some(constraints) = self.places[place].constraints.as_ref().filter(|_| self.alternate == Alternate::More)
        else {
            return;
        };
        let known = &self.places[place].missing;
        let is_missing = |name: &&str| !members.contains_key(*name) && !known.iter().any(|(known, _)| known == name);
        let names: Vec<&str> = constraints.member_names().filter(is_missing).collect();
        let mut found: Vec<(String, Value)> = Vec::new();
        for name in names {
            if !found.iter().any(|(known, _)| known == name) {
                let example = self.example(&constraints.member(name), None);
                found.extend(example.map(|example| (name.to_owned(), example)));
            }
        }
        self.places[place].missing.extend(found);
    }

    /// Finds an element for an array that has none.
    fn find_first_element(&mut self, place: usize, seed: u64) {
        let here = &self.places[place];
        if self.alternate != Alternate::More || here.first_element.is_some() {
            return;
        }
        let found = here.constraints.as_ref().and_then(|constraints| self.example(&constraints.element(0), None));
        if let Some(found) = found {
            let element = self.element_place(place, 0);
            self.survey(&found, element, seed_below(seed, &0usize.to_le_bytes()));
            self.places[place].first_element = Some(found);
        }
    }

    fn example(&self, constraints: &Constraints<'_>, not: Option<Value>) -> Option<Value> {
        let left = self.examples.get().checked_sub(1)?;
        self.examples.set(left);
        constraints.example(not)
    }

    /// Returns the value with as many changes as the schema allows.
    fn find(&mut self, value: &Value) -> Value {
        let units = self.units();
        if !self.is_accepted(value, &units, 0, &Extent::All) {
            // A value that violates its schema has none that could be kept.
            self.compiled = self.compiled.filter(|compiled| compiled.is_valid(value));
            self.accept_parts(value, &units);
        }
        self.valid.take().unwrap_or_else(|| value.clone())
    }

    /// The changes that the alternate makes. Leaves come before lengths, because copies of elements may have to differ.
    fn units(&self) -> Vec<Unit> {
        let of_kind = |change: Change| {
            let places = self.places.iter().enumerate();
            places
                .filter(move |(index, place)| self.is_changed(*index, place, change))
                .map(move |(index, _)| (index, change))
        };
        let optional = self.places.iter().flat_map(|place| {
            let constraints = place.constraints.as_ref().filter(|_| self.alternate == Alternate::Less);
            let is_optional = move |name: &String| constraints.is_some_and(|constraints| !constraints.requires(name));
            place.members.iter().filter(move |(name, _)| is_optional(name)).map(|(_, member)| (*member, Change::Absent))
        });
        let mut optional: Vec<Unit> = optional.collect();
        optional.sort_by_key(|(place, _)| *place);
        let kinds = [Change::Null, Change::Leaf, Change::Length, Change::Present];
        optional.into_iter().chain(kinds.into_iter().flat_map(of_kind)).collect()
    }

    fn is_changed(&self, index: usize, place: &Place<'_>, change: Change) -> bool {
        let has = |kind: fn(&Value) -> bool| place.samples.iter().any(kind);
        match change {
            Change::Absent => false,
            // An empty array shows more than none, and so does the rest of the whole value.
            Change::Null => {
                self.alternate == Alternate::Less && place.facts.is_nullable && index > 0 && !has(Value::is_array)
            }
            Change::Leaf => place.samples.iter().any(|sample| self.way(place, sample, 0).is_some()),
            Change::Length => matches!(self.alternate, Alternate::More | Alternate::Less) && has(Value::is_array),
            Change::Present => !place.missing.is_empty(),
        }
    }

    /// Accepts those of some rejected changes that leave the value valid together with the accepted ones: each half, or what
    /// is valid of it.
    fn accept_parts(&mut self, value: &Value, units: &[Unit]) {
        match units {
            [] => {}
            [unit] => self.accept_other_way(value, *unit),
            units => {
                let (first, second) = units.split_at(units.len() / 2);
                for half in [first, second] {
                    if !self.is_accepted(value, half, 0, &Extent::All) {
                        self.accept_parts(value, half);
                    }
                }
            }
        }
    }

    /// Accepts another way of one change, or the change of some values of its place.
    fn accept_other_way(&mut self, value: &Value, unit: Unit) {
        let (place, change) = unit;
        let ways = match change {
            Change::Absent | Change::Null | Change::Present => 1,
            Change::Length => 3,
            Change::Leaf => {
                let place = &self.places[place];
                let has_way = |way: &usize| place.samples.iter().any(|sample| self.way(place, sample, *way).is_some());
                (0..MAX_WAYS).take_while(has_way).count()
            }
        };
        if (1..ways).any(|way| self.is_accepted(value, &[unit], way, &Extent::All)) {
            return;
        }
        if change == Change::Leaf && self.places[place].seeds.len() > 1 {
            let seeds = self.places[place].seeds.clone();
            let mut accepted = HashSet::new();
            self.accept_some(value, unit, &seeds, &mut accepted);
        }
    }

    /// Accepts the change of those values of a place that leave the whole valid.
    fn accept_some(&mut self, value: &Value, unit: Unit, seeds: &[u64], accepted: &mut HashSet<u64>) {
        let together: HashSet<u64> = accepted.iter().chain(seeds).copied().collect();
        if seeds.len() < self.places[unit.0].seeds.len()
            && self.is_accepted(value, &[unit], 0, &Extent::Some(together.clone()))
        {
            *accepted = together;
            return;
        }
        // A rejected change leaves the one before it in force.
        if !accepted.is_empty() {
            self.choose(&[unit], Some((0, Extent::Some(accepted.clone()))));
        }
        if seeds.len() > 1 && self.validations > 0 {
            let (first, second) = seeds.split_at(seeds.len() / 2);
            self.accept_some(value, unit, first, accepted);
            self.accept_some(value, unit, second, accepted);
        }
    }

    /// Whether the value with these changes is valid; then they are accepted.
    fn is_accepted(&mut self, value: &Value, units: &[Unit], way: usize, extent: &Extent) -> bool {
        let Some(left) = self.validations.checked_sub(1) else { return false };
        self.validations = left;
        self.choose(units, Some((way, extent.clone())));
        let changed = self.changed(value, 0, self.salt, false, &mut Counts::default());
        let is_valid = self.compiled.is_none_or(|compiled| compiled.is_valid(&changed));
        match is_valid {
            true => self.valid = Some(changed),
            false => self.choose(units, None),
        }
        is_valid
    }

    fn choose(&mut self, units: &[Unit], chosen: Option<(usize, Extent)>) {
        for (place, change) in units {
            self.places[*place].chosen[*change as usize].clone_from(&chosen);
        }
    }

    /// The accepted way of a change for a value.
    fn chosen(&self, place: usize, change: Change, seed: u64) -> Option<usize> {
        let (way, extent) = self.places[place].chosen[change as usize].as_ref()?;
        match extent {
            Extent::All => Some(*way),
            Extent::Some(seeds) => seeds.contains(&seed).then_some(*way),
        }
    }

    /// A part of the value with its changes. `is_copy` is true in an element that makes an array longer.
    fn changed(&self, value: &Value, place: usize, seed: u64, is_copy: bool, counts: &mut Counts) -> Value {
        if self.chosen(place, Change::Null, seed).is_some() {
            return Value::Null;
        }
        let here = &self.places[place];
        match value {
            Value::Object(members) => {
                let mut changed = Map::new();
                for (name, member) in members {
                    let place = here.members.get(name).copied();
                    if place.is_some_and(|place| self.chosen(place, Change::Absent, seed).is_some()) {
                        continue;
                    }
                    let seed = seed_below(seed, name.as_bytes());
                    let member = match place {
                        Some(place) => self.changed(member, place, seed, is_copy, counts),
                        None => member.clone(),
                    };
                    changed.insert(name.clone(), member);
                }
                if self.chosen(place, Change::Present, seed).is_some() {
                    for (name, member) in here.missing.iter().filter(|(name, _)| !members.contains_key(name)) {
                        changed.insert(name.clone(), member.clone());
                    }
                }
                Value::Object(changed)
            }
            Value::Array(elements) => Value::Array(self.changed_elements(elements, place, seed, is_copy, counts)),
            leaf => {
                let way = self.chosen(place, Change::Leaf, seed).and_then(|way| self.way(here, leaf, way));
                let changed = way.and_then(|way| self.changed_leaf(leaf, here, way, seed, is_copy, counts));
                changed.unwrap_or_else(|| leaf.clone())
            }
        }
    }

    fn changed_elements(
        &self,
        elements: &[Value],
        place: usize,
        seed: u64,
        is_copy: bool,
        counts: &mut Counts,
    ) -> Vec<Value> {
        let here = &self.places[place];
        let way = self.chosen(place, Change::Length, seed);
        let kept = match (self.alternate, way) {
            (Alternate::Less, Some(way)) => here.facts.min_items.max(way),
            _ => elements.len(),
        };
        let changed_at = |index: usize, element: &Value, is_copy: bool, counts: &mut Counts| {
            let seed = seed_below(seed, &index.to_le_bytes());
            match here.element_at(index) {
                Some(place) => self.changed(element, place, seed, is_copy, counts),
                None => element.clone(),
            }
        };
        let mut changed: Vec<Value> = Vec::new();
        for (index, element) in elements.iter().enumerate().take(kept) {
            changed.push(changed_at(index, element, is_copy, counts));
        }
        let (Alternate::More, Some(way)) = (self.alternate, way) else { return changed };
        let wanted = match way {
            0 | 1 => (2 * elements.len() + 1).max(LONGER_ARRAY),
            _ => elements.len() + 1,
        };
        let sources: Vec<&Value> = match elements {
            [] => here.first_element.iter().collect(),
            elements => elements.iter().collect(),
        };
        let first = here.facts.tuple_length;
        let sources = if first < sources.len() { &sources[first..] } else { &sources[..] };
        for (index, source) in (elements.len()..wanted.min(here.facts.max_items)).zip(sources.iter().cycle()) {
            if counts.added >= MAX_ADDED {
                break;
            }
            counts.added += size_of(source);
            // The second way is copies as they are.
            changed.push(if way == 1 { (*source).clone() } else { changed_at(index, source, true, counts) });
        }
        changed
    }

    /// The way with an index to change a leaf: the alternate decides which there are, the likeliest first.
    fn way(&self, place: &Place<'_>, leaf: &Value, index: usize) -> Option<Way> {
        let facts = &place.facts;
        let constraints = place.constraints.as_ref().filter(|_| facts.has_choices);
        let is_choice = constraints.is_some_and(|constraints| constraints.choices().any(|choice| choice == leaf));
        let is_free = !facts.is_closed;
        let is_loose = is_free && !facts.has_pattern;
        let has_example = is_free && facts.has_schema;
        let nth = |ways: &[(bool, Way)]| ways.iter().filter(|(is_there, _)| *is_there).nth(index).map(|(_, way)| *way);
        match (leaf, self.alternate) {
            (Value::Object(_) | Value::Array(_), _) => None,
            (Value::String(_), Alternate::Near) => nth(&[
                (is_loose, Way::Text(Growth::Unique)),
                (is_free, Way::Text(Growth::Same)),
                (has_example, Way::Example),
            ]),
            (Value::String(_), Alternate::More) => nth(&[
                (is_choice, Way::Choice(1)),
                (is_loose, Way::Text(Growth::Longer)),
                (is_loose, Way::Text(Growth::Unique)),
                (is_free, Way::Text(Growth::Same)),
                (has_example, Way::Example),
            ]),
            (Value::String(_), Alternate::Less) => nth(&[
                (is_choice, Way::Choice(-1)),
                // An empty string has no format, although a validator may accept it.
                (is_free && !facts.has_format, Way::EmptyText),
                (is_free, Way::Text(Growth::Earlier)),
                (has_example, Way::Example),
            ]),
            (Value::Number(_), Alternate::Near) => {
                nth(&[(is_free, Way::Number(NumberGoal::Near)), (has_example, Way::Example)])
            }
            (Value::Number(_), Alternate::More) => nth(&[
                (is_choice, Way::Choice(1)),
                (is_free, Way::Number(NumberGoal::Large)),
                (is_free, Way::Number(NumberGoal::Near)),
                (has_example, Way::Example),
            ]),
            (Value::Number(_), Alternate::Less) => nth(&[
                (is_choice, Way::Choice(-1)),
                (is_free, Way::Number(NumberGoal::Zero)),
                (is_free, Way::Number(NumberGoal::Near)),
                (has_example, Way::Example),
            ]),
            (Value::String(_), Alternate::Compared(_)) => {
                (index < self.compared.texts.len()).then_some(Way::Compared(index))
            }
            (Value::Number(_), Alternate::Compared(_)) => {
                (index < self.compared.numbers.len()).then_some(Way::Compared(index))
            }
            (Value::Bool(_), Alternate::More) => nth(&[(true, Way::Flipped)]),
            (Value::Bool(true), Alternate::Less) => nth(&[(true, Way::False)]),
            (Value::Null, Alternate::More) => nth(&[(is_choice, Way::Choice(1)), (has_example, Way::Example)]),
            (Value::Bool(_), _) | (Value::Null, _) => None,
        }
    }

    fn changed_leaf(
        &self,
        leaf: &Value,
        place: &Place<'_>,
        way: Way,
        seed: u64,
        is_copy: bool,
        counts: &mut Counts,
    ) -> Option<Value> {
        let mut dice = Dice::new(seed);
        let (constraints, facts) = (place.constraints.as_ref(), &place.facts);
        match way {
            Way::Text(growth) => {
                let text = leaf.as_str()?;
                if let Some(varied) = self.changed_json(text, place, seed) {
                    return Some(Value::from(varied));
                }
                let growth = if is_copy && growth == Growth::Longer { Growth::Unique } else { growth };
                let mut varied = vary_text(text, &mut dice, growth, facts.max_length);
                if !counts.used_texts.insert(seed_below(0, varied.as_bytes())) {
                    varied = vary_text(text, &mut dice, growth, facts.max_length);
                }
                Some(Value::from(varied))
            }
            Way::EmptyText => Some(Value::from("")),
            Way::Number(goal) => {
                let goal = if is_copy && goal == NumberGoal::Large { NumberGoal::Near } else { goal };
                vary_number(leaf.as_number()?, facts.bounds, goal, &mut dice, &mut counts.used_numbers)
                    .map(Value::Number)
            }
            Way::Choice(_) | Way::Flipped if is_copy => None,
            Way::Choice(distance) => {
                let choices: Vec<&Value> = constraints?.choices().collect();
                let at = choices.iter().position(|choice| *choice == leaf)?;
                let other = (at as isize + distance).rem_euclid(choices.len() as isize) as usize;
                Some(choices[other].clone())
            }
            Way::Flipped => Some(Value::from(!leaf.as_bool()?)),
            Way::False => Some(Value::from(false)),
            Way::Compared(further) => {
                let Alternate::Compared(index) = self.alternate else { return None };
                let (values, count) = match leaf {
                    Value::String(_) => (&self.compared.texts, &mut counts.texts),
                    _ => (&self.compared.numbers, &mut counts.numbers),
                };
                let start = index + *count + further;
                *count += 1;
                let closed = constraints.filter(|_| facts.is_closed);
                let is_allowed = |value: &&Value| match closed {
                    Some(closed) => closed.choices().any(|choice| choice == *value),
                    None => !facts.is_integer || !value.is_f64(),
                };
                values.iter().cycle().skip(start % values.len().max(1)).take(values.len()).find(is_allowed).cloned()
            }
            Way::Example => {
                let constraints = constraints?;
                let not = if leaf.is_null() { json!({ "type": "null" }) } else { json!({ "const": leaf }) };
                let found = place.example.get_or_init(|| self.example(constraints, Some(not)));
                found.clone().filter(|found| leaf.is_null() || found.is_string() == leaf.is_string())
            }
        }
    }

    /// A string that contains JSON stays JSON: its leaves change.
    fn changed_json(&self, text: &str, place: &Place<'_>, seed: u64) -> Option<String> {
        let is_json = text.len() <= MAX_JSON_TEXT && text.trim_start().starts_with(['{', '[']);
        if !is_json || place.facts.has_pattern {
            return None;
        }
        let parsed: Value = serde_json::from_str(text).ok()?;
        let varied = alternate(&parsed, None, self.alternate, &[], seed);
        (varied != parsed).then(|| varied.to_string())
    }
}

impl Place<'_> {
    fn element_at(&self, index: usize) -> Option<usize> {
        self.tuple.get(index).copied().or(self.element)
    }
}

/// The number of values inside a value, with itself.
fn size_of(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(size_of).sum::<usize>(),
        Value::Array(elements) => 1 + elements.iter().map(size_of).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
