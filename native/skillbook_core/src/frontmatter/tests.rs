use super::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn rt(pairs in pairs(), body in any::<String>()) {
        let t = write(&pairs, &body);
        let d = parse(&t).map_err(|e| TestCaseError::fail(format!("{e:?} {t:?}")))?;
        prop_assert_eq!(&d.data, &Value::Map(pairs), "{:?}", t);
        prop_assert_eq!(d.body, body);
    }
}
fn pairs() -> impl Strategy<Value = Vec<(String, Value)>> {
    let text = prop_oneof![
        any::<String>(),
        "[ -~\n\r\t\u{85}\u{2028}\u{feff}\u{0}\u{7f}é#:'\"|>-]{0,12}",
        "(---|\\.\\.\\.|null|true|~|1e3|0x1f|\\.inf|-|\\?|: | #|\n| |x|😀){0,6}"
    ];
    let float = any::<f64>().prop_filter("finite", |f| f.is_finite());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        float.prop_map(Value::Float),
        text.clone().prop_map(Value::Str)
    ];
    let t2 = text.clone();
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::btree_map(t2.clone(), inner, 0..4).prop_map(|m| Value::Map(m.into_iter().collect())),
        ]
    });
    prop::collection::btree_map(text, value, 0..4).prop_map(|m| m.into_iter().collect())
}
