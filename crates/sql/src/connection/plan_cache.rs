//! Plans that connections share.

use super::plan::{Plan, Ready};
use super::prepared::Prepared;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_program::bind;
use fabius_sql_syntax::normal_form::{Literal, NormalForm};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Plans that are kept, at most.
const PLANS: usize = 4096;

/// Statements of one normal form that are kept, at most: programs that differ in what literals say.
const TEMPLATES: usize = 8;

/// Bytes of a text whose plan is kept, at most: a long one hardly comes twice.
pub(super) const TEXT_BYTES: usize = 16 << 10;

/// Statements that are ready to run: shared by connections whose catalogs say the same.
#[derive(Default)]
pub(super) struct PlanCache {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_text: HashMap<String, Vec<Arc<Prepared>>>,
    by_form: HashMap<String, Vec<Arc<Template>>>,
    count: usize,
}

/// A statement that others of its normal form run as, if they differ in its free literals only.
struct Template {
    prepared: Arc<Prepared>,
    plan: Arc<Plan>,
    literals: Vec<Literal>,
}

impl PlanCache {
    /// A statement of this text under a version of the catalog.
    pub fn get(&self, version: u64, types: &[SqlType], text: &str) -> Option<Arc<Prepared>> {
        let kept = self.kept.lock();
        let mut found = kept.by_text.get(text)?.iter();
        found.find(|prepared| prepared.given == types && prepared.ready(version).is_some()).cloned()
    }

    /// A statement under a version of the catalog, by a text of a normal form that is known.
    pub fn get_alike(&self, version: u64, text: &str, form: &NormalForm) -> Option<Arc<Prepared>> {
        let templates = self.kept.lock().by_form.get(&form.text)?.clone();
        templates.iter().filter(|template| template.plan.version == version).find_map(|template| {
            let literals = bind::arguments(template.plan.recipes(), &template.literals, &form.literals)?;
            let ready = Ready { plan: template.plan.clone(), literals };
            let prepared = Prepared::new(text, template.prepared.command.clone(), &[], ready);
            // Its plan is the template's.
            prepared.share();
            Some(Arc::new(prepared))
        })
    }

    /// Keeps a statement: by its normal form if some of its literals are arguments, else by its text.
    pub fn put(&self, version: u64, prepared: &Arc<Prepared>, form: Option<NormalForm>) {
        let Some(Ready { plan, .. }) = prepared.ready(version) else { return };
        if prepared.text.len() > TEXT_BYTES {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.count >= PLANS {
            *kept = Kept::default();
        }
        kept.count += 1;
        let Some(form) = form.filter(|_| !plan.recipes().is_empty()) else {
            kept.by_text.entry(prepared.text.clone()).or_default().push(prepared.clone());
            return;
        };
        let prepared = prepared.clone();
        let templates = kept.by_form.entry(form.text).or_default();
        if templates.len() >= TEMPLATES {
            templates.remove(0);
        }
        templates.push(Arc::new(Template { prepared, plan, literals: form.literals }));
    }

    pub fn clear(&self) {
        *self.kept.lock() = Kept::default();
    }
}
