//! An entry as a `%Skillbook.Entry{}`.

use rustler::{Encoder, Env, NifResult, Term};
use skillbook_core::catalog::entry::Entry;
use skillbook_core::page::fields::{metadata, Approval};

use crate::encode;
use crate::shared::{binary, TextResource};

mod atoms {
    rustler::atoms! {
        __struct__,
        module = "Elixir.Skillbook.Entry",
        name,
        kind,
        domain,
        title,
        description,
        handler,
        tags,
        tenant,
        labels,
        aliases,
        requires,
        effects,
        limits,
        idempotent,
        timeout,
        max_running,
        approval,
        required,
        strict,
        allowed_tools,
        schedule,
        timezone,
        include_in_prompt,
        hidden_from_model,
        user_invocable,
        triggers,
        license,
        compatibility,
        metadata,
        selection,
        trust,
        files,
        usage,
        data,
        body,
        path,
        source,
    }
}

/// Encoding fails only for a map with a key twice. Neither these keys nor those of a YAML mapping
/// can be.
pub fn encode<'a>(env: Env<'a>, entry: &Entry) -> Term<'a> {
    struct_term(env, entry).unwrap_or_else(|_| encode::option(env, &None::<bool>))
}

fn struct_term<'a>(env: Env<'a>, entry: &Entry) -> NifResult<Term<'a>> {
    let (data, empty) = (entry.document.data(), Term::map_new(env));
    let fields = entry.fields();
    let text = TextResource::new(entry.document.text.clone());
    let pairs = [
        (atoms::__struct__(), atoms::module().encode(env)),
        (atoms::name(), entry.name.encode(env)),
        (atoms::kind(), encode::static_atom(env, entry.kind.as_str())),
        (atoms::domain(), encode::option(env, &entry.domain)),
        (atoms::title(), encode::option(env, &entry.title)),
        (atoms::description(), entry.description().encode(env)),
        (atoms::handler(), encode::option(env, &entry.handler())),
        (atoms::tags(), fields.tags.encode(env)),
        (atoms::labels(), entry.labels.encode(env)),
        (atoms::aliases(), fields.aliases.encode(env)),
        (atoms::requires(), fields.requires.encode(env)),
        (atoms::effects(), encode::static_atom(env, entry.effects().as_str())),
        (atoms::limits(), limits(env, entry)?),
        (atoms::strict(), fields.strict.encode(env)),
        (atoms::allowed_tools(), fields.allowed_tools.as_deref().unwrap_or_default().encode(env)),
        (atoms::schedule(), encode::option(env, &entry.schedule())),
        (atoms::timezone(), encode::option(env, &fields.timezone)),
        (atoms::include_in_prompt(), fields.include_in_prompt.encode(env)),
        (atoms::hidden_from_model(), fields.hidden_from_model.encode(env)),
        (atoms::user_invocable(), fields.user_invocable.encode(env)),
        (atoms::triggers(), fields.triggers.encode(env)),
        (atoms::license(), encode::option(env, &fields.license)),
        (atoms::compatibility(), encode::option(env, &fields.compatibility)),
        (atoms::metadata(), metadata(&data).map_or(Ok(empty), |it| encode::value(env, it))?),
        (atoms::selection(), encode::static_atom(env, entry.selection.as_str())),
        (atoms::trust(), encode::static_atom(env, entry.trust.as_str())),
        (atoms::files(), entry.files.encode(env)),
        (atoms::usage(), encode::option(env, &fields.usage)),
        (atoms::data(), encode::value(env, &data)?),
        (atoms::body(), binary(env, &text, entry.document.body_range())),
        (atoms::path(), entry.document.path.encode(env)),
        (atoms::source(), entry.source.name.encode(env)),
    ];
    Term::map_from_pairs(env, &pairs)
}

fn limits<'a>(env: Env<'a>, entry: &Entry) -> NifResult<Term<'a>> {
    let fields = entry.fields();
    // A struct with more than 32 fields would be built in more than one step.
    let tenant = entry.tenant().name().map(|name| (atoms::tenant(), name.encode(env)));
    let limits = [(atoms::timeout(), fields.timeout), (atoms::max_running(), fields.max_running)];
    let limits = limits.into_iter().filter_map(|(name, limit)| Some((name, limit?.encode(env))));
    let approval = match &fields.approval {
        Approval::None => None,
        Approval::Required => Some(atoms::required().encode(env)),
        Approval::Flags(flags) => Some(flags.encode(env)),
    };
    let approval = approval.map(|approval| (atoms::approval(), approval));
    let idempotent = fields.idempotent.then(|| (atoms::idempotent(), true.encode(env)));
    let pairs = limits.chain(approval).chain(idempotent).chain(tenant);
    Term::map_from_pairs(env, &pairs.collect::<Vec<_>>())
}
