//! Types whose schema in mock files is that of another type.

/// Gives a type the JSON Schema of another type: the schema contains neither the place of a value nor the order of
/// keys.
macro_rules! schema_of {
    ([$($generics:tt)*] $type:ty = $shown:ty) => {
        impl<$($generics)*> schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                <$shown>::inline_schema()
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$shown>::schema_name()
            }

            fn schema_id() -> std::borrow::Cow<'static, str> {
                <$shown>::schema_id()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$shown>::json_schema(generator)
            }
        }
    };
}
pub(super) use schema_of;
