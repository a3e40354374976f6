//! `--save`

use crate::fixture::{Fixture, rehearse};

/// A server of the handshake era that has one answer for every request after the handshake.
fn server_that_answers(result: &str) -> Fixture {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"odd"}}}"#;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{result}}}"#);
    let server = "read line; cat initialize; echo; read line; read line; cat answer; echo; cat > /dev/null";
    Fixture::new().file("initialize", initialize).file("answer", &answer).file("server", server)
}

#[test]
fn content_that_is_not_text_is_saved_to_new_files() {
    let fixture = Fixture::new();
    rehearse!(fixture, "rehearse call picture --save out -- tiny-server", @r"
exit: 0
----- stdout -----
[image image/png, 69 bytes]
[link tiny://pixel, image/png]
[resource tiny://greeting, text/plain]
Hello from tiny-server
----- stderr -----
saved out/picture.png, 69 bytes
");
    rehearse!(fixture, "rehearse call picture --save out --json --protocol legacy -- tiny-server; ls out", @r#"
exit: 0
----- stdout -----
{"content":[{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mPQ6w4HAAH7ARFK28dFAAAAAElFTkSuQmCC","mimeType":"image/png"},{"type":"resource_link","uri":"tiny://pixel","name":"pixel","mimeType":"image/png"},{"type":"resource","resource":{"uri":"tiny://greeting","mimeType":"text/plain","text":"Hello from tiny-server"}}]}
picture-2.png
picture.png
----- stderr -----
saved out/picture-2.png, 69 bytes
"#);
}

#[test]
fn a_server_cannot_choose_the_path_of_saved_files() {
    let evil = r#"{"content":[
        {"type":"resource","resource":{"uri":"x:///../../../../tmp/../../etc/..","blob":"AAAA"}},
        {"type":"resource","resource":{"uri":"file:///home/.ssh/.authorized_keys","blob":"AAAA"}},
        {"type":"resource","resource":{"uri":"x:..\\..\\evil\u0000.png","blob":"AAAA"}},
        {"type":"image","mimeType":"image/../../png","data":"AAAA"}
    ]}"#;
    let fixture = server_that_answers(&evil.replace('\n', " "));
    let line = "rehearse call ../../up --args '{}' --save deep/out --protocol legacy -- sh server; find . -name '*.*' -type f | sort";
    rehearse!(fixture, line, @r"
exit: 0
----- stdout -----
[resource x:///../../../../tmp/../../etc/.., 3 bytes]
[resource file:///home/.ssh/.authorized_keys, 3 bytes]
[resource x:..\..\evil�.png, 3 bytes]
[image image/../../png, 3 bytes]
./deep/out/authorized_keys.bin
./deep/out/content.bin
./deep/out/evil.png
./deep/out/up.bin
----- stderr -----
saved deep/out/content.bin, 3 bytes
saved deep/out/authorized_keys.bin, 3 bytes
saved deep/out/evil.png, 3 bytes
saved deep/out/up.bin, 3 bytes
");
    let line = "mkdir trap; ln -s ../outside trap/up.bin; rehearse call up --args '{}' --save trap --protocol legacy -- sh server > /dev/null; ls trap";
    rehearse!(fixture, line, @r"
exit: 0
----- stdout -----
authorized_keys.bin
content.bin
evil.png
up-2.bin
up.bin
----- stderr -----
saved trap/content.bin, 3 bytes
saved trap/authorized_keys.bin, 3 bytes
saved trap/evil.png, 3 bytes
saved trap/up-2.bin, 3 bytes
");
}

#[test]
fn invalid_base64_in_a_result_is_a_failure() {
    let fixture = server_that_answers(r#"{"content":[{"type":"image","mimeType":"image/png","data":"%%"}]}"#);
    rehearse!(fixture, "rehearse call map --args '{}' --save out --protocol legacy -- sh server || echo status $?; ls", @r"
    exit: 0
    ----- stdout -----
    [image image/png, invalid base64]
    status 1
    answer
    initialize
    server
    ----- stderr -----
    error: cannot save a content block: its base64 is invalid: Invalid symbol 37, offset 0.
    ");
}

#[test]
fn an_unwritable_save_directory_is_refused() {
    let fixture = Fixture::new().file("taken", "");
    rehearse!(fixture, "rehearse call picture --save taken/out -- tiny-server", @r"
exit: 2
----- stdout -----
[image image/png, 69 bytes]
[link tiny://pixel, image/png]
[resource tiny://greeting, text/plain]
Hello from tiny-server
----- stderr -----
error: cannot write taken/out: Not a directory (os error 20)
");
}
