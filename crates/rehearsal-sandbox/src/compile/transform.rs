//! The steps of [`compile`].

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{Program, Statement};
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan, SourceType, Span};
use oxc_transformer::{TransformOptions, Transformer};

use super::calls::{self, Calls, StaticCall, ToolReference};
use super::caught::CaughtParts;
use super::diagnostic::Diagnostic;
use super::edits::Edits;
use super::probes::{self, ProbeSite, Probes};
use super::rejected::rejected;
use super::stack::{MAX_BRACKETS, MAX_SOURCE_BYTES, stack_bytes};
use crate::place::{LineIndex, MapToken, PlaceMap, SourcePlace};

/// The most diagnostics that are returned: each has a copy of its line.
const MAX_DIAGNOSTICS: usize = 50;

/// What to do about a plan that is too large.
const LESS_DATA: &str = "read large values with a tool instead of writing them into the plan";

/// A plan that can run.
#[derive(Debug, Clone)]
pub struct CompiledPlan {
    /// The name of the source, as errors show it.
    pub file: String,
    /// The JavaScript that the worker evaluates: an expression whose value is an `async` function.
    pub code: String,
    /// The calls whose server and tool the source names, in source order.
    pub static_calls: Vec<StaticCall>,
    /// The calls of tools whose names are computed when the plan runs.
    pub computed_calls: Vec<SourcePlace>,
    /// The tools that the source names without calling them there.
    pub tool_references: Vec<ToolReference>,
    /// The calls whose results the plan does not use.
    pub discarded_calls: Vec<SourcePlace>,
    /// The places at which the plan decides what it does next; their ids are their indexes.
    pub sites: Vec<ProbeSite>,
    /// The derivations whose values may be used in arguments of tools: the place of the call, the name of the argument, and
    /// the indexes of the sites.
    pub derived_arguments: Vec<((u32, u32), String, Vec<u32>)>,
    /// Strings and numbers that the plan compares with.
    pub compared: Vec<serde_json::Value>,
    /// Whether the plan has so many decisions that not all are recorded.
    pub is_partly_probed: bool,
    pub(crate) places: PlaceMap,
    caught: CaughtParts,
}

impl CompiledPlan {
    /// Line `line` (1-based) of the source, for a message that shows it.
    pub fn source_line(&self, line: u32) -> &str {
        self.places.source_line(line)
    }

    /// Whether the plan catches an error of a call at this place.
    pub fn is_caught(&self, place: &SourcePlace) -> bool {
        self.caught.contain(place)
    }

    /// The user's source.
    pub fn source(&self) -> &str {
        self.places.source()
    }
}

/// Compiles a plan: TypeScript or JavaScript with top-level `await` and `return`.
///
/// The value of the plan is what it returns, or the value of its last statement if that is an expression. An `if`, a
/// loop or a declaration as last statement has no value.
pub fn compile(file: &str, source: &str) -> Result<CompiledPlan, Vec<Diagnostic>> {
    let lines = LineIndex::new(source);
    let reject =
        |offset: usize, message: String, hint| Err(vec![Diagnostic::new(&lines, offset as u32, message, hint)]);
    if source.len() > MAX_SOURCE_BYTES {
        let message = format!("a plan has at most {MAX_SOURCE_BYTES} bytes, and this one has {}", source.len());
        return reject(0, message, Some(LESS_DATA));
    }
    if let Some(at) = source.find('\0') {
        return reject(at, "a plan cannot contain a NUL character".to_owned(), Some("write `\\0`"));
    }
    let Some(stack) = stack_bytes(source) else {
        return reject(0, format!("a plan has at most {MAX_BRACKETS} brackets"), Some(LESS_DATA));
    };
    // A thread of its own, so that a deeply nested source cannot overflow the caller's stack.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(stack);
        match thread.spawn_scoped(scope, || compile_here(file, &lines)) {
            Ok(thread) => match thread.join() {
                Ok(compiled) => compiled,
                Err(_) => reject(0, "the compiler cannot read this plan (a bug of the compiler)".to_owned(), None),
            },
            Err(error) => reject(0, format!("cannot start the compiler: {error}"), None),
        }
    })
}

fn compile_here(file: &str, source: &LineIndex) -> Result<CompiledPlan, Vec<Diagnostic>> {
    let allocator = Allocator::default();
    let parsed = parse(&allocator, source.text());
    let diagnose = |diagnostic| Diagnostic::from_oxc(source, diagnostic);
    let mut diagnostics: Vec<Diagnostic> = parsed.diagnostics.into_iter().take(MAX_DIAGNOSTICS).map(diagnose).collect();
    if parsed.panicked || !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let program = parsed.program;
    let checked = SemanticBuilder::new().with_check_syntax_error(true).with_build_nodes(true).with_enum_eval(true);
    let checked = checked.build(&program);
    diagnostics.extend(checked.diagnostics.into_iter().take(MAX_DIAGNOSTICS).map(diagnose));
    diagnostics.extend(rejected(source, &program, &checked.semantic));
    if !diagnostics.is_empty() {
        diagnostics.sort_by_key(|diagnostic| (diagnostic.place.line, diagnostic.place.column));
        diagnostics.truncate(MAX_DIAGNOSTICS);
        return Err(diagnostics);
    }
    let Calls { index, named, computed, references, discarded } = calls::find(source, &program, &checked.semantic);
    let value = last_value(&program);
    let is_value = |offset: u32| value.is_some_and(|value| value.start <= offset && offset < value.end);
    let discarded = discarded.into_iter().filter(|offset| !is_value(*offset)).map(|offset| source.place(offset));
    let caught = CaughtParts::find(source, &program);
    let mut edits = Edits::default();
    if let Some(value) = value {
        edits.insert(value.start, "return (");
    }
    let prefix = probes::prefix(source.text());
    let Probes { sites, compared, is_truncated, arguments } =
        probes::add(source, &program, &checked.semantic, &prefix, &mut edits);
    if let Some(value) = value {
        edits.insert(value.end, ")");
    }
    let edited = LineIndex::new(&edits.apply(source.text()));
    let (code, tokens) = transform(&allocator, &edited).map_err(|message| {
        vec![Diagnostic::new(source, 0, format!("the compiler cannot transform this plan: {message}"), None)]
    })?;
    let generated = LineIndex::new(&code);
    let functions =
        ["b", "q", "o", "n", "i", "s", "c", "h", "d"].map(|function| format!("{prefix}{function}")).join(", ");
    let code = format!("(async ({functions}) => {{\n{code}\n}})");
    let places = PlaceMap { source: source.clone(), edited, generated, tokens, edits, calls: index };
    Ok(CompiledPlan {
        file: file.to_owned(),
        code,
        static_calls: named,
        computed_calls: computed,
        tool_references: references,
        discarded_calls: discarded.collect(),
        sites,
        derived_arguments: arguments.into_iter().map(|((at, name), from)| (source.position(at), name, from)).collect(),
        compared,
        is_partly_probed: is_truncated,
        places,
        caught,
    })
}

fn parse<'a>(allocator: &'a Allocator, source: &'a str) -> ParserReturn<'a> {
    let options = ParseOptions {
        allow_return_outside_function: true,
        parse_regular_expression: true,
        preserve_parens: true,
        ..ParseOptions::default()
    };
    Parser::new(allocator, source, SourceType::ts().with_module(true)).with_options(options).parse()
}

/// The expression whose value is the value of the plan.
fn last_value(program: &Program<'_>) -> Option<Span> {
    use Statement::{EmptyStatement, TSInterfaceDeclaration, TSTypeAliasDeclaration};
    let erased = |statement: &&Statement<'_>| {
        matches!(statement, EmptyStatement(_) | TSTypeAliasDeclaration(_) | TSInterfaceDeclaration(_))
    };
    match program.body.iter().rev().find(|statement| !erased(statement)) {
        Some(Statement::ExpressionStatement(statement)) => Some(statement.expression.span()),
        Some(_) => None,
        None => program.directives.last().map(|directive| directive.expression.span),
    }
}

/// Removes types and prints JavaScript with a source map.
fn transform(allocator: &Allocator, edited: &LineIndex) -> Result<(String, Vec<MapToken>), String> {
    let parsed = parse(allocator, edited.text());
    if let Some(diagnostic) = parsed.diagnostics.into_iter().next() {
        return Err(diagnostic.to_string());
    }
    let mut program = parsed.program;
    program.hashbang = None;
    let scoping = SemanticBuilder::new().with_excess_capacity(2.0).with_enum_eval(true).build(&program);
    let scoping = scoping.semantic.into_scoping();
    let options = TransformOptions::default();
    let transformed = Transformer::new(allocator, Path::new("plan.ts"), &options);
    let transformed = transformed.build_with_scoping(scoping, &mut program);
    if let Some(diagnostic) = transformed.diagnostics.into_iter().next() {
        return Err(diagnostic.to_string());
    }
    // The transformer leaves `export {}` where only types were imported or exported.
    program.body.retain(|statement| !statement.is_module_declaration());
    let options = CodegenOptions {
        comments: CommentOptions::disabled(),
        // Indentation would make deeply nested code quadratic.
        indent_width: 0,
        source_map_path: Some("plan.ts".into()),
        ..CodegenOptions::default()
    };
    let printed = Codegen::new().with_options(options).build(&program);
    let map = printed.map.ok_or("no source map")?;
    let token = |token: oxc_sourcemap::Token| MapToken {
        generated: (token.get_dst_line(), token.get_dst_col()),
        source: (token.get_src_line(), token.get_src_col()),
    };
    let tokens = map.get_tokens().map(token).collect();
    Ok((printed.code, tokens))
}
