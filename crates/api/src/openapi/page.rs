//! The description of the interface as a page.

use std::fmt::Write;

use serde_json::Value;
use utoipa::openapi::OpenApi;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
    code,h3{font-family:ui-monospace,monospace}h3{margin:2rem 0 0}table{border-collapse:collapse}\
    td,th{text-align:left;vertical-align:top;padding:.1rem 1rem .1rem 0}";

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// A page with every operation and every type.
pub(super) fn render(document: &OpenApi) -> String {
    let document = serde_json::to_value(document).unwrap_or_default();
    let mut page = String::new();
    let title = text(&document["info"]["title"]);
    let _ = write!(
        page,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <style>{STYLE}</style></head><body><h1>{title} {}</h1><p>{} The same for programs: \
         <a href=\"/openapi.json\">openapi.json</a>.</p>",
        text(&document["info"]["version"]),
        text(&document["info"]["description"])
    );
    for (path, operations) in entries(&document["paths"]) {
        for method in METHODS {
            if let Some(operation) = operations.get(method) {
                write_operation(&mut page, method, path, operation);
            }
        }
    }
    page.push_str("<h2>Types</h2>");
    for (name, schema) in entries(&document["components"]["schemas"]) {
        write_schema(&mut page, name, schema);
    }
    page.push_str("</body></html>\n");
    page
}

fn write_operation(page: &mut String, method: &str, path: &str, operation: &Value) {
    let _ = write!(
        page,
        "<h3>{} {}</h3><p>{}</p>",
        method.to_uppercase(),
        escape(path),
        text(&operation["summary"])
    );
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let parameters = parameters.iter().map(|parameter| {
        let is_required = parameter["required"] == true;
        let required = if is_required { ", required" } else { "" };
        let name = format!(
            "<code>{}</code> ({}{required})",
            text(&parameter["name"]),
            text(&parameter["in"])
        );
        [name, text(&parameter["description"])]
    });
    let body = entries(&operation["requestBody"]["content"]).map(|(content_type, content)| {
        let description = text(&operation["requestBody"]["description"]);
        [
            format!("body, <code>{}</code>", escape(content_type)),
            format!("{} {description}", type_name(&content["schema"])),
        ]
    });
    let responses = entries(&operation["responses"]).map(|(status, response)| {
        let mut types = entries(&response["content"]).map(|(_, content)| &content["schema"]);
        let name = types.next().map(type_name).unwrap_or_default();
        [format!("<code>{status}</code>"), format!("{} {name}", text(&response["description"]))]
    });
    write_table(page, parameters.chain(body).chain(responses));
}

fn write_schema(page: &mut String, name: &str, schema: &Value) {
    let name = escape(name);
    let _ = write!(page, "<h3 id=\"{name}\">{name}</h3><p>{}</p>", text(&schema["description"]));
    let fields = entries(&schema["properties"]).map(|(field, schema)| {
        let description = format!("{} {}", type_name(schema), text(&schema["description"]));
        [format!("<code>{}</code>", escape(field)), description]
    });
    write_table(page, fields);
}

fn write_table(page: &mut String, rows: impl Iterator<Item = [String; 2]>) {
    page.push_str("<table>");
    for [left, right] in rows {
        let _ = write!(page, "<tr><td>{left}</td><td>{right}</td></tr>");
    }
    page.push_str("</table>");
}

/// The name of a type, with a link to it if it is described.
fn type_name(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = escape(reference.rsplit('/').next().unwrap_or(reference));
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    if let Some(any) = schema["oneOf"].as_array() {
        return any.iter().map(type_name).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => {
            format!("array of {}", type_name(&schema["items"]))
        }
        Value::String(name) => escape(name),
        Value::Array(names) => names.iter().map(text).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}

fn entries(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(text(&json!("<a href=\"x\">&")), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }

    #[test]
    fn types_are_named() {
        for (schema, name) in [
            (json!({"type": "string"}), "string"),
            (json!({"type": ["string", "null"]}), "string or null"),
            (json!({"type": "array", "items": {"type": "integer"}}), "array of integer"),
            (json!({"$ref": "#/components/schemas/A"}), "<a href=\"#A\">A</a>"),
            (
                json!({"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/A"}]}),
                "null or <a href=\"#A\">A</a>",
            ),
        ] {
            assert_eq!(type_name(&schema), name);
        }
    }
}
