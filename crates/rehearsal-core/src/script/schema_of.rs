//! Types that the schema of mock files shows as another type.

/// Gives a type the JSON Schema of another: where a value stands, or in which order, is no part of what may be written.
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
