//! A recording as a mock file: one rule a distinct request, all recorded answers of it in order, the default last.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rehearsal_core::answer::{Hello, UriTemplate, as_heard};
use rehearsal_core::message::{ErrorReply, Method};
use rehearsal_core::protocol::{Era, Revision, code};
use rehearsal_core::script::mock::write::{Draft, DraftAnswer, DraftIntroduced, Offer, Says};
use rehearsal_core::script::mock::{self, Validate};
use serde_json::{Map, Value, json};

use super::beyond::{beyond_rules, telling};
use super::completion::suggestions;
use super::declared::not_always;
use super::generated::Generated;
use super::group::{Group, grouped};
use super::learned::{Learned, Request};
use super::levels::within_levels;
use super::listed::Listed;
use super::rule_name::{ANYTHING_ELSE, RuleNames};
use super::secret::{matcher, uri_pattern};
use super::told::untold;

/// Writes the mock that answers like the recording; `source` is what to call the recording.
pub fn generate_mock(learned: &Learned, source: &str) -> Generated {
    let (learned, too_deep) = within_levels(learned);
    let mut requests: HashMap<_, HashMap<_, Vec<_>>> = HashMap::new();
    for request in &learned.requests {
        let subject = request.subject().unwrap_or_default();
        requests.entry(request.method.as_str()).or_default().entry(subject).or_default().push(request);
    }
    let left_out = [learned.left_out.clone(), too_deep, untold(&learned).into_iter().collect()].concat();
    let mut writer = Writer { learned: &learned, requests, left_out };
    let source = source.replace(char::is_control, "?");
    let comment = format!(
        "Answers like {source}. Edit it: rules are tried in order, and the first that fits answers.\n\
         `rehearse check` says what is wrong with it, `rehearse mock` serves it.\n"
    );
    let text = writer.draft(comment).written();
    Generated::new(vec![("server.mock.yaml".to_owned(), text)], &writer.left_out)
}

struct Writer<'a> {
    learned: &'a Learned,
    /// The requests by their method and what they are about.
    requests: HashMap<&'a str, HashMap<&'a str, Vec<&'a Request>>>,
    left_out: Vec<String>,
}

impl<'a> Writer<'a> {
    fn draft(&mut self, comment: String) -> Draft {
        let mut server = self.learned.server.clone();
        server.insert("name".to_owned(), self.learned.name().into());
        server.insert("version".to_owned(), self.learned.version().into());
        let draft = Draft {
            comment,
            server: Some(server.into()),
            instructions: self.learned.instructions.clone(),
            // What the server thought of arguments is in its recorded answers.
            validate: Some(Validate::Off),
            tools: self.tools(),
            resources: self.resources(),
            resource_templates: self.resource_templates(),
            prompts: self.prompts(),
            refuses: self.refuses(),
            versions: self.versions(),
            page_size: self.learned.page_size(),
            ..Draft::default()
        };
        if draft.page_size.is_none() {
            self.left_out.extend(self.learned.lists().into_iter().filter_map(Listed::paged));
        }
        let requests = self.requests(&draft);
        self.as_recorded(Draft { requests, ..draft })
    }

    /// The rules for what the mock would answer otherwise by itself.
    fn requests(&mut self, draft: &Draft) -> Vec<(String, Vec<DraftAnswer>)> {
        let mut rules = Vec::new();
        for (method, requests) in beyond_rules(self.learned, draft) {
            if let Some(why) = mock::Request::objection(method.as_str()) {
                self.left_out.push(format!("{method}, because {why}"));
                continue;
            }
            let told: Vec<_> = requests.iter().map(|request| telling(request)).collect();
            let mut names = RuleNames::new(told.iter().map(Some));
            let mut answers = Vec::new();
            for (request, told) in requests.into_iter().zip(&told) {
                let params = request.params.as_object().cloned().unwrap_or_default();
                let (name, when) = (Some(names.name(Some(told))), Some(exactly(&params, &Value::Null)));
                answers.extend(rule(request).map(|rule| DraftAnswer { name, when, ..rule }));
            }
            answers.iter_mut().for_each(say_exactly);
            rules.push((method.as_str().to_owned(), answers));
        }
        rules
    }

    /// The versions that are spoken, where the server is known not to speak all of them.
    fn versions(&self) -> Vec<Revision> {
        let newest = self.learned.newest_legacy;
        let spoken =
            |revision: &Revision| newest.is_some_and(|newest| !revision.has_handshake() || *revision <= newest);
        Revision::ALL.into_iter().filter(spoken).collect()
    }

    /// A draft whose mock says in each version what was recorded in it.
    fn as_recorded(&mut self, draft: Draft) -> Draft {
        let declared = &self.learned.capabilities;
        let mut heard: BTreeMap<Revision, DraftIntroduced> = BTreeMap::new();
        for (revision, capabilities) in declared.by_version() {
            heard.entry(revision).or_default().capabilities = Some(capabilities.clone());
        }
        // Since 2026-07-28 every result says who answers, in what a mock file has for it.
        let servers = self.learned.servers.iter().filter(|(revision, _)| revision.era() == Era::Legacy);
        for (revision, server) in servers {
            heard.entry(*revision).or_default().server = Some(server.clone().into());
        }
        let (draft, left_out) = as_heard(draft, &Hello { capabilities: declared.all(), heard });
        self.left_out.extend(self.learned.own_of_server(&[Era::Modern]));
        self.left_out.extend(declared.unstable().map(|key| not_always(key)));
        self.left_out.extend(left_out);
        draft
    }

    fn tools(&mut self) -> Vec<Offer> {
        let learned = self.learned;
        let unlisted = unlisted(learned, &learned.tools, &Method::TOOLS_CALL, |_| false);
        let mut tools = Vec::new();
        for Shown { listed, hidden } in all(&learned.tools, unlisted) {
            let Some(name) = listed.get("name").and_then(Value::as_str) else { continue };
            // Recorded answers come at once; nobody has to wait for a task.
            let at_once = listed.pointer("/execution/taskSupport").is_some_and(|support| support == "required");
            let requests = self.with_arguments(&Method::TOOLS_CALL, name);
            let nothing = format!("nothing was recorded for these arguments of {name}");
            let answers = self.answers(&listed, &requests, ErrorReply::new(code::INVALID_PARAMS, nothing));
            let heard = learned.tools.heard(name);
            tools.push(Offer { hidden, heard, at_once, exactly: at_once, ..Offer::new(listed, answers) });
        }
        tools
    }

    fn resources(&mut self) -> Vec<Offer> {
        let learned = self.learned;
        let of_templates = self.of_templates();
        let by_pattern = |uri: &str| of_templates.contains(uri) || uri_pattern(uri).is_some();
        let unlisted = unlisted(learned, &learned.resources, &Method::RESOURCES_READ, by_pattern);
        let mut resources = Vec::new();
        for Shown { listed, hidden } in all(&learned.resources, unlisted) {
            let Some(uri) = listed.get("uri").and_then(Value::as_str) else { continue };
            let requests: Vec<_> =
                self.about(&Method::RESOURCES_READ, uri).iter().map(|request| (*request, None)).collect();
            let nothing = ErrorReply::new(code::RESOURCE_NOT_FOUND, format!("nothing was recorded for {uri}"));
            let answers = self.answers(&listed, &requests, nothing);
            let heard = learned.resources.heard(uri);
            resources.push(Offer { hidden, heard, ..Offer::new(listed, answers) });
        }
        resources
    }

    /// What was read that a template finds. Of what differs only in how it is spelled, as `a b` and `a%20b` do, that is the
    /// first.
    fn of_templates(&self) -> BTreeSet<&'a str> {
        let Listed { items, gone, .. } = &self.learned.resource_templates;
        let read = |it: &Value| UriTemplate::read(it.get("uriTemplate")?.as_str()?).ok();
        let templates: Vec<_> = items.iter().chain(gone).filter_map(read).collect();
        let mut spelled = BTreeSet::new();
        let uris = self.learned.requests_of(&Method::RESOURCES_READ).filter_map(|request| request.subject());
        let found = uris.filter(|uri| !is_known(&self.learned.resources, uri)).filter(|uri| {
            let of = templates.iter().enumerate().filter(|(_, it)| !it.variables().is_empty());
            let found = of.filter_map(|(at, it)| Some((at, format!("{:?}", it.matches(uri)?)))).next();
            found.is_some_and(|found| spelled.insert(found))
        });
        found.collect()
    }

    fn resource_templates(&mut self) -> Vec<Offer> {
        let mut templates = Vec::new();
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        let learned = self.learned;
        let of_templates = self.of_templates();
        let gone = learned.resource_templates.gone.iter();
        let gone = gone.map(|listed| Shown { listed: listed.clone(), hidden: true }).collect();
        for Shown { listed, hidden } in all(&learned.resource_templates, gone) {
            let Some(written) = listed.get("uriTemplate").and_then(Value::as_str) else { continue };
            let pattern = UriTemplate::read(written).ok();
            let (mut requests, mut complete) = (Vec::new(), Vec::new());
            if pattern.is_none() {
                self.left_out.push(format!("what belongs to {written:?}, which cannot be read backwards"));
            }
            for variable in pattern.iter().flat_map(UriTemplate::variables) {
                let values = suggestions(learned, "ref/resource", "uri", written, variable);
                complete.extend((!values.is_empty()).then(|| (variable.clone(), values)));
            }
            for request in learned.requests_of(&Method::RESOURCES_READ) {
                let Some(uri) = request.subject().filter(|uri| of_templates.contains(uri)) else {
                    continue;
                };
                let variables = pattern.as_ref().and_then(|pattern| pattern.matches(uri));
                if let Some(variables) = variables.filter(|_| taken.insert(uri)) {
                    requests.push((request, Some(variables)));
                }
            }
            let nothing = ErrorReply::new(code::RESOURCE_NOT_FOUND, "nothing was recorded for this resource");
            let answers = self.answers(&listed, &requests, nothing);
            let heard = learned.resource_templates.heard(written);
            let exactly = pattern.is_none_or(|it| it.variables().is_empty());
            templates.push(Offer { exactly, hidden, heard, complete, ..Offer::new(listed, answers) });
        }
        // What nobody listed may be asked for with any secret.
        for request in learned.requests_of(&Method::RESOURCES_READ) {
            let Some(uri) = request.subject().filter(|uri| !is_known(&learned.resources, uri)) else { continue };
            if let Some(pattern) = uri_pattern(uri).filter(|_| taken.insert(uri)) {
                let listed = json!({"uriTemplate": pattern, "name": pattern});
                let nothing = ErrorReply::new(code::RESOURCE_NOT_FOUND, "nothing was recorded for this resource");
                let answers = self.answers(&listed, &[(request, None)], nothing);
                templates.push(Offer { hidden: true, ..Offer::new(listed, answers) });
            }
        }
        templates
    }

    fn prompts(&mut self) -> Vec<Offer> {
        let learned = self.learned;
        let unlisted = unlisted(learned, &learned.prompts, &Method::PROMPTS_GET, |_| false);
        let mut prompts = Vec::new();
        for Shown { listed, hidden } in all(&learned.prompts, unlisted) {
            let Some(name) = listed.get("name").and_then(Value::as_str) else { continue };
            let arguments = listed.get("arguments").and_then(Value::as_array).into_iter().flatten();
            let arguments = arguments.filter_map(|argument| argument.get("name")?.as_str());
            let complete = arguments.filter_map(|argument| {
                let values = suggestions(learned, "ref/prompt", "name", name, argument);
                (!values.is_empty()).then(|| (argument.to_owned(), values))
            });
            let complete = complete.collect();
            let requests = self.with_arguments(&Method::PROMPTS_GET, name);
            let nothing = format!("nothing was recorded for these arguments of {name}");
            let answers = self.answers(&listed, &requests, ErrorReply::new(code::INVALID_PARAMS, nothing));
            let heard = learned.prompts.heard(name);
            prompts.push(Offer { hidden, heard, complete, ..Offer::new(listed, answers) });
        }
        prompts
    }

    fn about(&self, method: &Method, subject: &str) -> &[&'a Request] {
        self.requests.get(method.as_str()).and_then(|all| all.get(subject)).map_or(&[], Vec::as_slice)
    }

    fn with_arguments(&self, method: &Method, subject: &str) -> Vec<(&'a Request, Option<Map<String, Value>>)> {
        let arguments = |request: &Request| Some(request.arguments().cloned().unwrap_or_default());
        self.about(method, subject).iter().map(|request| (*request, arguments(request))).collect()
    }

    /// What was refused whatever was asked for.
    fn refuses(&self) -> BTreeMap<String, ErrorReply> {
        let mut all = self.learned.refuses.clone();
        for method in [Method::COMPLETE, Method::RESOURCES_SUBSCRIBE, Method::RESOURCES_UNSUBSCRIBE] {
            let refused = self.learned.always_refused(&method);
            all.extend(refused.map(|error| (method.as_str().to_owned(), error.clone())));
        }
        all
    }

    /// The rules for requests with these arguments.
    fn answers(
        &self,
        listed: &Value,
        requests: &[(&Request, Option<Map<String, Value>>)],
        otherwise: ErrorReply,
    ) -> Vec<DraftAnswer> {
        let mut rules = Vec::new();
        let mut names = RuleNames::new(requests.iter().map(|(_, arguments)| arguments.as_ref()));
        let mut has_default = false;
        for (request, arguments) in requests {
            let when = arguments.as_ref().map(|arguments| exactly(arguments, listed));
            has_default |= when.is_none();
            let name = Some(names.name(arguments.as_ref()));
            rules.extend(rule(request).map(|rule| DraftAnswer { name, when, ..rule }));
        }
        if !has_default {
            let name = Some(ANYTHING_ELSE.to_owned());
            rules.push(DraftAnswer { name, ..DraftAnswer::new(Says::Error(otherwise)) });
        }
        rules
    }
}

/// All answers to a request, in turn where there are several.
fn rule(request: &Request) -> Option<DraftAnswer> {
    let mut groups = grouped(request);
    // The last answer is given for ever.
    let last = groups.pop()?.draft();
    if groups.is_empty() {
        return Some(last);
    }
    let times = |group: &Group<'_>| (group.times > 1).then_some(group.times);
    let mut in_turn: Vec<_> = groups.iter().map(|group| DraftAnswer { times: times(group), ..group.draft() }).collect();
    in_turn.push(last);
    Some(DraftAnswer::new(Says::InTurn(in_turn)))
}

/// A mock has no words of its own for the results of other methods.
fn say_exactly(answer: &mut DraftAnswer) {
    match &mut answer.says {
        Says::Result(result) => answer.says = Says::Exactly(result.take()),
        Says::InTurn(answers) => answers.iter_mut().for_each(say_exactly),
        Says::Exactly(_) | Says::Template(_) | Says::Error(_) => {}
    }
}

/// Something that is offered, and whether nobody sees it in a list.
struct Shown {
    listed: Value,
    hidden: bool,
}

/// What is in a list, and then what is not.
fn all(list: &Listed, unlisted: Vec<Shown>) -> impl Iterator<Item = Shown> {
    list.items.iter().map(|listed| Shown { listed: listed.clone(), hidden: false }).chain(unlisted)
}

fn is_known(list: &Listed, name: &str) -> bool {
    list.find(name).is_some() || list.find_gone(name).is_some()
}

/// What was asked for though it was not listed, or not any more. Where nobody ever asked for the list, it may have been
/// in it; `elsewhere` says what answers it otherwise.
fn unlisted(learned: &Learned, list: &Listed, method: &Method, elsewhere: impl Fn(&str) -> bool) -> Vec<Shown> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for name in learned.requests_of(method).filter_map(Request::subject) {
        if list.find(name).is_some() || !seen.insert(name) {
            continue;
        }
        let listed = match (list.find_gone(name), method.as_str()) {
            (Some(gone), _) => gone.clone(),
            (None, _) if elsewhere(name) => continue,
            (None, "resources/read") => json!({"uri": name, "name": name}),
            (None, "tools/call") => json!({"name": name, "inputSchema": {"type": "object"}}),
            (None, _) => json!({"name": name}),
        };
        found.push(Shown { listed, hidden: list.was_asked });
    }
    found
}

/// These arguments and no others, for what was listed like this.
fn exactly(arguments: &Map<String, Value>, listed: &Value) -> Value {
    let exact = matcher(arguments);
    // Where there is an argument of this name, it would be taken for that; so would `length` be everywhere.
    let of_prompt = listed.get("arguments").and_then(Value::as_array).into_iter().flatten();
    let is_argument = listed.pointer("/inputSchema/properties/exact").is_some()
        || of_prompt.into_iter().any(|argument| argument["name"] == "exact");
    if is_argument || exact.get("exact").is_none() { json!({"all_of": [exact]}) } else { exact }
}
