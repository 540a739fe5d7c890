use serde_json::{json, Value as Json};

use super::check::Checker;
use super::index::Index;
use super::*;

/// The required part of the official suite for draft 2020-12.
#[test]
fn the_official_suite_passes() {
    // Not a part of the package.
    #[allow(clippy::disallowed_methods)]
    let suite = std::fs::read_to_string("tests/fixtures/json_schema_2020_12.json").unwrap();
    let suite: Json = serde_json::from_str(&suite).unwrap();
    let documents = suite["documents"].as_object().unwrap();
    let documents: Vec<_> = documents.iter().map(|(uri, node)| (uri.as_str(), node)).collect();
    let (mut count, mut failed) = (0, Vec::new());
    for (file, groups) in suite["tests"].as_object().unwrap() {
        for group in groups.as_array().unwrap() {
            let index = Index::new(&group["schema"], &documents);
            for test in group["tests"].as_array().unwrap() {
                count += 1;
                let fits =
                    with_stack(|| Checker::new(&index).fits(&group["schema"], &test["data"]));
                let mistakes =
                    with_stack(|| Checker::new(&index).mistakes(&group["schema"], &test["data"]));
                if fits != test["valid"] || mistakes.is_ok() != fits {
                    failed
                        .push(format!("{file}: {} {}", group["description"], test["description"]));
                }
                assert!(mistakes.is_ok_and(|()| fits) || !fits);
            }
        }
    }
    // A schema cannot choose which keywords there are.
    let vocabulary = "vocabulary: \"schema that uses custom metaschema with with no validation \
                      vocabulary\" \"no validation: invalid number, but it still validates\"";
    assert_eq!(failed, [vocabulary]);
    assert_eq!(count, 1299);
}

fn words(texts: &[&str]) -> Given {
    Given::Words(texts.iter().map(|text| (*text).to_owned()).collect())
}

/// A schema of one value, what was given for it, and the value, or the mistakes.
#[test]
fn values_are_read_as_their_schema_allows() {
    let text = json!({"type": "string"});
    let nullable = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    let integer = json!({"type": "integer", "minimum": 1});
    let either = json!({"type": ["string", "integer"]});
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let numbers = json!({"type": ["array", "null"], "items": {"$ref": "#/$defs/n"},
        "$defs": {"n": {"type": "number"}}});
    let object = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let switch = json!({"type": "boolean"});
    let any_items = json!({"type": "array", "items": {"required": ["a"]}});
    let lists = json!({"type": "array", "items": {"type": "array"}});
    let rows: Vec<(&Json, Given, Result<Json, &str>)> = vec![
        (&text, words(&["ann"]), Ok(json!("ann"))),
        (&text, words(&["two", "words"]), Ok(json!("two words"))),
        (&text, words(&["5"]), Ok(json!("5"))),
        (&text, words(&["null"]), Ok(json!("null"))),
        (&text, words(&["[1]"]), Ok(json!("[1]"))),
        (&text, words(&[]), Err("it needs a value")),
        (&text, Given::Json(json!(5)), Ok(json!("5"))),
        (&text, Given::Json(json!({})), Err("it must be a text, got {}")),
        (&nullable, words(&["ann"]), Ok(json!("ann"))),
        (&nullable, words(&["null"]), Ok(Json::Null)),
        (&nullable, words(&["5"]), Ok(json!("5"))),
        (&nullable, words(&["\"null\""]), Ok(json!("null"))),
        (&nullable, Given::Json(Json::Null), Ok(Json::Null)),
        (&integer, words(&["7"]), Ok(json!(7))),
        (&integer, words(&["0"]), Err("it must be a number from 1 on, got 0")),
        (&integer, words(&["ann"]), Err("it must be a whole number, got \"ann\"")),
        (&integer, Given::Json(json!("7")), Ok(json!(7))),
        (&integer, Given::Json(json!([7])), Ok(json!(7))),
        (&either, words(&["7"]), Ok(json!(7))),
        (&either, words(&["ann"]), Ok(json!("ann"))),
        (&texts, words(&["a", "b c"]), Ok(json!(["a", "b c"]))),
        (&texts, words(&["a"]), Ok(json!(["a"]))),
        (&texts, words(&["[\"a\"]"]), Ok(json!(["a"]))),
        (&texts, words(&["[]"]), Ok(json!([]))),
        (&texts, Given::Json(json!("a")), Ok(json!(["a"]))),
        (&any_items, words(&["[{}]"]), Err("[0].a is missing")),
        (&lists, words(&["[1]"]), Ok(json!([[1]]))),
        (&lists, words(&["[[1], [2]]"]), Ok(json!([[1], [2]]))),
        (&lists, words(&["[1]", "[2]"]), Ok(json!([[1], [2]]))),
        (&numbers, words(&["1", "2.5"]), Ok(json!([1, 2.5]))),
        (&numbers, words(&["null"]), Ok(Json::Null)),
        (&numbers, words(&["x"]), Err("[0] must be a number, got \"x\"")),
        (&object, words(&["{\"a\": 1}"]), Ok(json!({"a": 1}))),
        (&object, words(&["{\"a\":", "1}"]), Ok(json!({"a": 1}))),
        (&object, words(&["a"]), Err("it must be an object, got \"a\"")),
        (&object, Given::Json(json!("{\"a\": 1}")), Ok(json!({"a": 1}))),
        (&object, Given::Json(json!({"a": "x"})), Err("a must be a whole number, got \"x\"")),
        (&switch, words(&[]), Ok(json!(true))),
        (&switch, words(&["off"]), Ok(json!(false))),
        (&switch, words(&["maybe"]), Err("it must be true or false, got \"maybe\"")),
    ];
    for (schema, given, expected) in rows {
        let shown = format!("{schema} {given:?}");
        let read = value(&Schema::new(schema.clone()).unwrap(), given);
        let read = read.map(Option::unwrap).map_err(|mistakes| mistakes[0].to_string());
        assert_eq!(read, expected.map_err(str::to_owned), "{shown}");
    }
    let schema = Schema::new(text).unwrap();
    assert_eq!(value(&schema, Given::Json(Json::Null)), Ok(None));
    assert_eq!(value(&schema, Given::Json(json!([]))), Ok(None));
}

/// Arguments that do not fit, and all their mistakes.
#[test]
fn mistakes_have_their_places() {
    let schema = json!({
        "type": "object",
        "properties": {
            "people": {"type": "array", "items": {"$ref": "#/$defs/person"}},
            "shape": {"oneOf": [
                {"type": "object", "required": ["r"], "properties": {"kind": {"const": "circle"},
                    "r": {"type": "number"}}},
                {"type": "null"},
            ]},
            "mode": {"enum": ["fast", "safe", 3]},
            "code": {"type": "string", "pattern": "^[A-Z]{2}$", "maxLength": 2},
        },
        "required": ["people"],
        "additionalProperties": false,
        "$defs": {"person": {"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string", "minLength": 1}}}},
    });
    let schema = Schema::new(schema).unwrap();
    let rows: [(Json, &[&str]); 8] = [
        (json!({}), &["people is missing"]),
        (json!({"people": [], "mod": 1}), &["mod is unknown; known: people, shape, mode, code"]),
        (
            json!({"people": [{"name": ""}, {}]}),
            &[
                "people[0].name must be a text of at least 1 characters, got \"\"",
                "people[1].name is missing",
            ],
        ),
        (
            json!({"people": [], "mode": "slow"}),
            &["mode must be one of \"fast\", \"safe\", 3, got \"slow\""],
        ),
        (
            json!({"people": [], "code": "ab"}),
            &["code must be a text that matches ^[A-Z]{2}$, got \"ab\""],
        ),
        (json!({"people": [], "shape": {"kind": "circle"}}), &["shape.r is missing"]),
        (json!({"people": [], "shape": 5}), &["shape must be an object or null, got 5"]),
        (json!([]), &["it must be an object, got []"]),
    ];
    for (value, expected) in rows {
        let mistakes = schema.check(&value).unwrap_err();
        let texts: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
        assert_eq!(texts, expected, "{value}");
    }
}

/// Schemas of strangers that would take a check hours, each with a value. The limit is that of all
/// tests.
#[test]
fn checks_end() {
    // Each definition uses the next one twice.
    let doubling: serde_json::Map<_, _> = (0..60)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"allOf": [next, next]}))
        })
        .collect();
    let deep = (0..60).fold(json!(1), |value, _| json!({"a": value}));
    let long = "a".repeat(30_000);
    let rows = [
        (json!({"$ref": "#/$defs/d0", "$defs": doubling}), json!(1)),
        (json!({"$ref": "#"}), json!(1)),
        (
            json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}},
            "not": {"type": "integer"}}),
            deep,
        ),
        (json!({"pattern": "^(a+)+$"}), json!(format!("{long}b"))),
        (json!({"pattern": "(a{1,1000}){1,1000}"}), json!(long)),
        (json!({"uniqueItems": true}), json!((0..100_000).collect::<Vec<_>>())),
    ];
    for (schema, value) in rows {
        let _ = Schema::new(schema).unwrap().check(&value);
    }
}

/// Properties without a schema of their own have that of a pattern of names, or of all others.
#[test]
fn other_properties_have_types_too() {
    let patterns = json!({
        "patternProperties": {"^S_": {"type": "string"}, "^I_": {"type": "integer"}},
        "additionalProperties": {"type": ["boolean", "string"]},
    });
    let unevaluated = json!({"allOf": [{"properties": {"own": {"type": "integer"}}}],
        "unevaluatedProperties": {"type": "string"}});
    let rows = [
        (&patterns, "S_a", json!("7")),
        (&patterns, "I_b", json!(7)),
        (&patterns, "other", json!("7")),
        (&unevaluated, "own", json!(7)),
        (&unevaluated, "other", json!("7")),
    ];
    for (schema, name, expected) in rows {
        let schema = Schema::new(schema.clone()).unwrap();
        let read = arguments(&schema, vec![(name.to_owned(), words(&["7"]))]).unwrap();
        assert_eq!(read[name], expected, "{name}");
    }
}

/// Reading a schema before a call ends too, for references that lead to ten others each.
#[test]
fn reading_ends() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let wide = |n: usize| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({keyword: vec![next; 10]}))
        };
        let definitions: serde_json::Map<_, _> = (0..60).map(wide).collect();
        let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        let schema = Schema::new(schema).unwrap();
        let spent = schema.read(|reader, root| {
            reader.types(root);
            reader.properties(root);
            reader.notation(root);
            reader.is_spent()
        });
        assert!(spent, "{keyword}");
        let _ = value(&schema, words(&["a"]));
    }
}

#[test]
fn schemas_have_limits() {
    let deep = (0..70).fold(json!({}), |schema, _| json!({"not": schema}));
    let long = json!({"description": "x".repeat(300_000)});
    let rows = [
        (json!([]), "expected an object, got []"),
        (deep, "expected values that are nested at most 64 deep"),
        (long, "expected at most 262144 bytes"),
        (json!({"properties": []}), "expected a mapping of schemas for `properties`, got []"),
        (json!({"items": {"enum": 1}}), "expected a list of values for `enum`, got 1"),
        (json!({"allOf": [1]}), "expected a schema, got 1"),
    ];
    for (schema, expected) in rows {
        assert_eq!(Schema::new(schema).unwrap_err(), expected);
    }
}

/// A schema, and its structure on one line.
#[test]
fn structures_are_written_in_short() {
    let rows = [
        (json!({}), "any value"),
        (json!({"type": "string", "format": "uri"}), "text (uri)"),
        (json!({"type": ["integer", "null"]}), "integer or null"),
        (json!({"enum": ["a", 1, null]}), "\"a\" or 1 or null"),
        (
            json!({"type": "array", "items": {"type": ["string", "number"]}}),
            "list of (text or number)",
        ),
        (
            json!({"properties": {"a": {"type": "string"}, "b": {"$ref": "#"}}, "required": ["a"]}),
            "{a: text, b?: {a: text, b?: …}}",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            "object of integer",
        ),
        (json!({"prefixItems": [{"type": "string"}, {}]}), "[text, any value]"),
        (
            json!({"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {}}}]}),
            "{a?: 1, b?: any value}",
        ),
        (
            json!({"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}],
            "$defs": {"x": {"type": "boolean"}}}),
            "true or false or null",
        ),
    ];
    for (schema, expected) in rows {
        let schema = Schema::new(schema).unwrap();
        assert_eq!(schema.read(|reader, root| reader.notation(root)), expected);
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    /// A schema with a value that fits.
    fn pairs() -> impl Strategy<Value = (Json, Json)> {
        let text = r#"[a-c"'\\{}\[\]:, 0-9nultrefé-]{0,12}"#;
        let leaf = prop_oneof![
            text.prop_map(|text| (json!({"type": "string"}), json!(text))),
            text.prop_map(|text| (json!({"type": ["string", "null"]}), json!(text))),
            text.prop_map(|text| (json!({"enum": [text, 1, null, [2]]}), json!(text))),
            text.prop_map(|text| (json!({}), json!(text))),
            any::<i64>().prop_map(|n| (json!({"type": "integer"}), json!(n))),
            any::<i32>().prop_map(|n| (json!({"type": ["number", "string"]}), json!(n))),
            (-1e9..1e9).prop_map(|n: f64| (json!({"type": "number"}), json!(n))),
            any::<bool>().prop_map(|is| (json!({"type": ["boolean", "string"]}), json!(is))),
            Just((json!({"type": ["string", "null"]}), Json::Null)),
            Just((json!({"type": "array"}), json!([]))),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                (inner.clone(), 0..4usize).prop_map(|((schema, value), count)| {
                    let list = json!({"type": "array", "items": schema});
                    (list, Json::Array(vec![value; count]))
                }),
                (inner.clone(), inner.clone())
                    .prop_map(|((one, value), (two, _))| { (json!({"anyOf": [two, one]}), value) }),
                inner.clone().prop_map(|(schema, value)| {
                    (json!({"$ref": "#/$defs/x", "$defs": {"x": schema}}), value)
                }),
                prop::collection::vec((r"[a-c$. é-]{1,4}", inner), 0..4).prop_map(|members| {
                    let (mut properties, mut values) = (json!({}), json!({}));
                    for (name, (schema, value)) in members {
                        properties[&name] = schema;
                        values[&name] = value;
                    }
                    let required: Vec<_> = values.as_object().unwrap().keys().cloned().collect();
                    let schema = json!({"type": "object", "properties": properties,
                        "required": required, "additionalProperties": false});
                    (schema, values)
                }),
            ]
        })
    }

    proptest! {
        /// Also as a word, by the rule of the documentation: texts where only texts are allowed,
        /// JSON elsewhere.
        #[test]
        fn values_that_fit_are_read_back((schema, expected) in pairs()) {
            // A reference of a part leads to the definitions of the whole.
            prop_assume!(!schema.to_string().contains("$defs") || schema.get("$defs").is_some());
            let schema = Schema::new(schema).unwrap();
            prop_assume!(schema.check(&expected).is_ok());
            let native = value(&schema, Given::Json(expected.clone()));
            prop_assert_eq!(native, Ok(Some(expected.clone())));
            let only_text = schema.read(|reader, root| reader.types(root).is_text());
            let word = match &expected {
                Json::String(text) if only_text => text.clone(),
                other => other.to_string(),
            };
            prop_assert_eq!(value(&schema, words(&[&word])), Ok(Some(expected)));
        }

        #[test]
        fn any_schema_and_value_can_be_read(
            schema in concat!(
                r#"\{("(type|items|anyOf|enum|\$ref|properties|pattern|required)": ?"#,
                r#"("[a-z#/$(]{0,8}"|\[\]|\{\}|1|true)(, ?)?){0,4}\}"#,
            ),
            given in r#"("[a-z]{0,3}"|\[1, \{\}\]|\{"a": null\}|1[.]5|null)"#,
        ) {
            if let Some(schema) =
                serde_json::from_str(&schema).ok().and_then(|json| Schema::new(json).ok())
            {
                let given: Json = serde_json::from_str(&given).unwrap();
                let _ = value(&schema, Given::Json(given.clone()));
                let _ = value(&schema, words(&[&given.to_string()]));
                let _ = arguments(&schema, vec![("a".into(), Given::Json(given))]);
                schema.read(|reader, root| reader.notation(root));
            }
        }
    }
}
