//! Syntax that a plan cannot have although it is valid TypeScript: modules, decorators, unknown globals.

use oxc_ast::ast::{Declaration, Decorator, ImportDeclaration, ImportExpression, ModuleDeclaration, TSModuleBlock};
use oxc_ast::{AstKind, ast::Program};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Semantic;
use oxc_span::{GetSpan, Span};

use super::diagnostic::Diagnostic;
use super::globals::{AVAILABLE, replacement};
use crate::place::LineIndex;

/// All rejected constructs of a program, in source order.
pub(super) fn rejected<'a>(source: &LineIndex, program: &Program<'a>, semantic: &Semantic<'a>) -> Vec<Diagnostic> {
    let mut visitor = Rejected { found: Vec::new(), namespaces: 0 };
    visitor.visit_program(program);
    let mut found = visitor.found;
    unknown_globals(semantic, &mut found);
    found.sort_by_key(|(span, ..)| span.start);
    found
        .into_iter()
        .take(MAX_REJECTED)
        .map(|(span, message, hint)| Diagnostic::new(source, span.start, message, hint.as_deref()))
        .collect()
}

/// The most constructs that are reported.
const MAX_REJECTED: usize = 50;

/// The longest name that a message shows.
const MAX_NAME_CHARACTERS: usize = 60;

type Rejection = (Span, String, Option<String>);

struct Rejected {
    found: Vec<Rejection>,
    /// How many namespaces are around the visited node; they export to each other, not to a module.
    namespaces: u32,
}

impl Rejected {
    fn reject(&mut self, span: Span, message: &str, hint: &str) {
        self.found.push((span, message.to_owned(), Some(hint.to_owned())));
    }
}

const NO_IMPORT: &str = "a plan cannot import modules";
const INSTEAD_OF_IMPORT: &str = "write the code into the plan, or call a tool of `mcp`; `import type` is allowed";
const NO_EXPORT: &str = "a plan cannot export";
const INSTEAD_OF_EXPORT: &str = "end the plan with `return value`, or with the value as last expression";

impl<'a> Visit<'a> for Rejected {
    fn visit_module_declaration(&mut self, declaration: &ModuleDeclaration<'a>) {
        if self.namespaces > 0 {
            return walk::walk_module_declaration(self, declaration);
        }
        match declaration {
            ModuleDeclaration::ImportDeclaration(import) => self.visit_import_declaration(import),
            ModuleDeclaration::ExportDeclaration(export) => {
                let erased = matches!(
                    export.declaration,
                    Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_)
                );
                if !erased {
                    self.reject(declaration.span(), NO_EXPORT, INSTEAD_OF_EXPORT);
                }
            }
            ModuleDeclaration::ExportNamedDeclaration(export) if export.export_kind.is_type() => {}
            ModuleDeclaration::ExportAllDeclaration(_)
            | ModuleDeclaration::ExportDefaultDeclaration(_)
            | ModuleDeclaration::ExportNamedDeclaration(_)
            | ModuleDeclaration::ExportFromDeclaration(_)
            | ModuleDeclaration::TSExportAssignment(_)
            | ModuleDeclaration::TSNamespaceExportDeclaration(_) => {
                self.reject(declaration.span(), NO_EXPORT, INSTEAD_OF_EXPORT);
            }
        }
    }

    fn visit_ts_module_block(&mut self, block: &TSModuleBlock<'a>) {
        self.namespaces += 1;
        walk::walk_ts_module_block(self, block);
        self.namespaces -= 1;
    }

    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        if !import.import_kind.is_type() {
            self.reject(import.span, NO_IMPORT, INSTEAD_OF_IMPORT);
        }
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        self.reject(import.span, NO_IMPORT, INSTEAD_OF_IMPORT);
    }

    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.reject(decorator.span, "a plan cannot use decorators", "call the function on the class or method");
        walk::walk_decorator(self, decorator);
    }

    fn enter_node(&mut self, kind: AstKind<'a>) {
        if let AstKind::ImportMeta(meta) = kind {
            self.reject(meta.span, "`import.meta` is not available in a plan", "a plan has no file name");
        }
    }
}

/// Adds the names that are neither declared nor globals of a plan. `typeof name` is allowed: it never throws.
fn unknown_globals(semantic: &Semantic<'_>, found: &mut Vec<Rejection>) {
    let scoping = semantic.scoping();
    // A plan that changes `globalThis` may define any name; only names of other runtimes are rejected then.
    let defines_globals = scoping.root_unresolved_references().keys().any(|name| name.as_str() == "globalThis");
    for (name, references) in scoping.root_unresolved_references() {
        let name = name.as_str();
        if AVAILABLE.binary_search(&name).is_ok() || name == "arguments" {
            continue;
        }
        let hint = replacement(name);
        if hint.is_none() && defines_globals {
            continue;
        }
        for reference in references.iter().map(|id| scoping.get_reference(*id)) {
            let kind = semantic.nodes().parent_kind(reference.node_id());
            let guarded = matches!(kind, AstKind::UnaryExpression(unary) if unary.operator.is_typeof());
            if !reference.is_value() || guarded {
                continue;
            }
            let shown: String = name.chars().take(MAX_NAME_CHARACTERS).collect();
            let (message, hint) = match hint {
                Some(hint) => (format!("`{shown}` is not available in a plan"), Some(hint.to_owned())),
                None => (format!("`{shown}` is not defined"), None),
            };
            found.push((semantic.reference_span(reference), message, hint));
        }
    }
}
