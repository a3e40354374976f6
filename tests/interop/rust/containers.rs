//! A real container engine, and an image on nothing at all.
//!
//! `.ci/run containers` runs these with docker and with podman. The usage examples of the mock-client specification in a
//! container are in `examples/instruction-server/tests/mock_client`.
//!
//! Each test has a label of its own on its containers, so that it sees only its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use instruction_server::InstructionClient;
use rehearsal::Client;
use rehearsal::client::{ClientBuilder, ClientError};
use rehearsal::core::protocol::Revision;
use rehearsal::testing::{SharedContainer, SharedServer, assert_contains, assert_success, assert_tool_exists};
use rehearsal::wire::StopOutcome;
use rehearsal::wire::container::{BackgroundContainer, Container, Engine, build};
use serde_json::json;

use crate::installation::{TIMEOUT, folder};

/// The engine under test: `CONTAINER_ENGINE`, or any engine that is found.
fn engine() -> Engine {
    Engine::find(std::env::var_os("CONTAINER_ENGINE").as_deref()).unwrap()
}

/// The image, built once for all tests of this process.
fn image() -> &'static str {
    static CONTEXT: OnceLock<PathBuf> = OnceLock::new();
    static IMAGE: OnceLock<String> = OnceLock::new();
    let context = CONTEXT.get_or_init(|| {
        let output = Command::new(folder().join("image")).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "tests/interop/image failed");
        PathBuf::from(String::from_utf8(output.stdout).unwrap().lines().last().unwrap())
    });
    IMAGE.get_or_init(|| build(&engine(), &context.join("Dockerfile"), None).unwrap())
}

/// The containers of one test.
struct TestContainers {
    label: String,
}

impl TestContainers {
    fn for_test(test: &str) -> TestContainers {
        TestContainers { label: format!("test={test}-{}", std::process::id()) }
    }

    /// The engine of CI has no network to give.
    fn options(&self) -> Vec<OsString> {
        ["--network", "none", "--label", &self.label].map(Into::into).to_vec()
    }

    fn container(&self) -> Container {
        let engine = Some(engine().program().to_owned());
        Container { engine, options: self.options(), ..Container::image(image()) }
    }

    fn client(&self) -> ClientBuilder {
        Client::container(self.container()).timeout(TIMEOUT)
    }

    /// The containers that still exist.
    fn left(&self) -> Vec<String> {
        let list = engine().run(["ps", "--all", "--quiet", "--filter", &format!("label={}", self.label)]);
        list.unwrap().lines().map(str::to_owned).collect()
    }

    /// Queries the engine until the condition holds.
    fn wait_for(&self, what: &str, so: impl Fn(&[String]) -> bool) {
        for _ in 0..200 {
            if so(&self.left()) {
                return;
            }
        }
        panic!("{what}: {:?}", self.left());
    }
}

/// A container that this library did not start; it is removed at the end of the test.
struct Foreign {
    name: String,
}

impl Foreign {
    fn start(test: &str) -> Foreign {
        let name = format!("foreign-{test}-{}", std::process::id());
        let words = ["run", "--detach", "--interactive", "--rm", "--network", "none", "--name", &name, image()];
        engine().run(words).unwrap();
        // A process in it that is not ours.
        engine().run(["exec", "--detach", &name, "/ignores-shutdown"]).unwrap();
        Foreign { name }
    }

    fn server(&self) -> ClientBuilder {
        let mut container = Container::running(&self.name);
        container.engine = Some(engine().program().to_owned());
        container.arguments = vec!["/ignores-shutdown".into()];
        Client::container(container).legacy(Revision::V2025_11_25).timeout(TIMEOUT)
    }

    /// The number of running servers that ignore shutdown, and of their children.
    fn staying(&self) -> (usize, usize) {
        let list = engine().run(["top", &self.name]).unwrap();
        let all: Vec<&str> = list.lines().filter(|line| line.contains("/ignores-shutdown")).collect();
        let children = all.iter().filter(|line| line.trim_end().ends_with("child")).count();
        (all.len() - children, children)
    }

    /// Asserts that only the foreign server is left; a killed process may be listed until it is reaped.
    fn is_left_alone(&self, when: &str) {
        let looks = || (0..50).map(|_| self.staying());
        assert!(looks().any(|staying| staying == (1, 1)), "{when}: {:?}", self.staying());
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = engine().run(["rm", "--force", &self.name]);
    }
}

#[tokio::test]
#[ignore = "needs a container engine: .ci/run containers"]
async fn the_container_of_a_server_is_removed_at_close_and_drop() {
    let mine = TestContainers::for_test("own");
    for builder in [mine.client().legacy(Revision::V2024_11_05), mine.client().modern(), mine.client()] {
        let client = builder.connect().await.unwrap();
        assert_tool_exists(client.list_tools().await.unwrap(), "route_instructions");
        assert_contains(&client.get_instructions().topic("retrospective").await.unwrap(), "etrospective");
        assert_eq!(mine.left().len(), 1);
        assert_eq!(client.close().await, StopOutcome::Exited);
        assert!(mine.left().is_empty(), "closed");
    }
    let client = mine.client().connect().await.unwrap();
    drop(client);
    assert!(mine.left().is_empty(), "dropped");
}

#[tokio::test]
#[ignore = "needs a container engine: .ci/run containers"]
async fn a_server_that_ignores_shutdown_ends_with_its_container() {
    let mine = TestContainers::for_test("stays");
    let mut container = mine.container();
    container.options.extend(["--entrypoint", "/ignores-shutdown"].map(OsString::from));
    let client = Client::container(container).timeout(TIMEOUT).connect().await.unwrap();
    assert_contains(&client.call_tool("any", json!({})).await.unwrap(), "here");
    client.close().await;
    assert!(mine.left().is_empty());
}

#[tokio::test]
#[ignore = "needs a container engine: .ci/run containers"]
async fn one_container_serves_many_clients_and_is_removed_on_drop() {
    let mine = TestContainers::for_test("many");
    let shared = BackgroundContainer::start(&engine(), image(), &mine.options(), &[]).unwrap();
    let clients = (0..3).map(|_| {
        let container = shared.exec(["/instruction-server"]);
        tokio::spawn(async move {
            let client = Client::container(container).timeout(TIMEOUT).connect().await.unwrap();
            assert_success(&client.search_instructions("commit").await.unwrap());
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    assert_eq!(mine.left().len(), 1);
    drop(shared);
    assert!(mine.left().is_empty());
}

#[tokio::test]
#[ignore = "needs a container engine: .ci/run containers"]
async fn a_test_that_panics_leaves_nothing_behind() {
    let mine = TestContainers::for_test("panic");
    let builder = mine.client();
    let test = tokio::spawn(async move {
        let client = builder.connect().await.unwrap();
        assert_success(&client.search_instructions("commit").await.unwrap());
        panic!("on purpose");
    });
    assert!(test.await.unwrap_err().is_panic());
    assert!(mine.left().is_empty());
}

#[tokio::test]
#[ignore = "needs a container engine: .ci/run containers"]
async fn container_errors_have_their_cause() {
    let mine = TestContainers::for_test("wrong");
    // The server gets an invalid variable. Its error text may be lost: podman does not always forward the last output of a
    // container that exits at once.
    let error = mine.client().env("INSTRUCTIONS_PATH", "/nowhere").connect().await.unwrap_err();
    let ClientError::ServerClosed { evidence, .. } = &error else { panic!("{error}") };
    assert_eq!(evidence.exit_status.unwrap().code(), Some(2), "{error}");
    // An image that is not there.
    let container = Container { options: vec!["--pull".into(), "never".into()], ..Container::image("no-such-image") };
    let container = Container { engine: Some(engine().program().to_owned()), ..container };
    let error = Client::container(container).timeout(Duration::from_secs(20)).connect().await.unwrap_err();
    let ClientError::ServerClosed { evidence, .. } = &error else { panic!("{error}") };
    assert_eq!(evidence.exit_status.unwrap().code(), Some(125), "{error}");
    assert!(error.to_string().contains("no-such-image"), "{error}");
    // A container that is not there.
    let mut container = Container::running("no-such-container");
    container.engine = Some(engine().program().to_owned());
    container.arguments = vec!["/ignores-shutdown".into()];
    let error = Client::container(container).timeout(TIMEOUT).connect().await.unwrap_err();
    assert!(error.to_string().contains("no-such-container"), "{error}");
    assert!(mine.left().is_empty());
}

#[tokio::test]
#[ignore = "needs a container engine: .ci/run containers"]
async fn a_server_in_a_foreign_container_ends_and_nothing_else_does() {
    let foreign = Foreign::start("exec");
    assert_eq!(foreign.staying(), (1, 1), "only the foreign server");

    let client = foreign.server().connect().await.unwrap();
    assert_contains(&client.call_tool("any", json!({})).await.unwrap(), "here");
    assert_eq!(foreign.staying(), (2, 2));
    assert_eq!(client.close().await, StopOutcome::Terminated);
    foreign.is_left_alone("closed");

    let client = foreign.server().connect().await.unwrap();
    assert_eq!(foreign.staying(), (2, 2));
    drop(client);
    foreign.is_left_alone("dropped");

    let builder = foreign.server();
    let test = tokio::spawn(async move {
        let client = builder.connect().await.unwrap();
        assert_success(&client.call_tool("any", json!({})).await.unwrap());
        panic!("on purpose");
    });
    assert!(test.await.unwrap_err().is_panic());
    foreign.is_left_alone("panicked");

    // Before its first message.
    let connecting = tokio::time::timeout(Duration::from_millis(50), foreign.server().connect()).await;
    drop(connecting);
    foreign.is_left_alone("timed out");
}

/// The options of containers that end with this program and not with a test; `SHARED_LABEL` sets their label.
fn shared_options() -> Vec<OsString> {
    let label = std::env::var("SHARED_LABEL").unwrap_or_else(|_| format!("test=shared-{}", std::process::id()));
    ["--network", "none", "--label", &label].map(Into::into).to_vec()
}

static CONTAINER: SharedContainer =
    SharedContainer::new(|| BackgroundContainer::start(&engine(), image(), &shared_options(), &[]));

static SERVER: SharedServer = SharedServer::new(|| {
    let engine = Some(engine().program().to_owned());
    let container = Container { engine, options: shared_options(), ..Container::image(image()) };
    Client::container(container).timeout(TIMEOUT)
});

mod shared {
    use super::*;

    #[tokio::test]
    #[ignore = "needs a container engine: .ci/run containers"]
    async fn one_test_has_a_server_in_the_container() {
        let client = CONTAINER.server(["/instruction-server"]).await.timeout(TIMEOUT).connect().await.unwrap();
        assert_success(&client.switch_engine("durian-0.5").await.unwrap());
        assert_success(&SERVER.client().await.search_instructions("commit").await.unwrap());
    }

    #[tokio::test]
    #[ignore = "needs a container engine: .ci/run containers"]
    async fn and_another_test_has_another_server_in_the_same_container() {
        let client = CONTAINER.server(["/instruction-server"]).await.timeout(TIMEOUT).connect().await.unwrap();
        let answer = client.route_instructions("/pongogo-retro").await.unwrap();
        assert_eq!(answer.structured_content().unwrap()["engine_version"], "durian-0.6", "the version at start");
        assert_success(&SERVER.client().await.search_instructions("commit").await.unwrap());
    }
}

/// Starts this test program again with only the tests of [`shared`], which leave two containers to the end of the program.
fn program_with_shared_containers(mine: &TestContainers) -> Child {
    image();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--ignored", "containers::shared::"]).env("SHARED_LABEL", &mine.label);
    program.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
#[ignore = "needs a container engine: .ci/run containers"]
fn a_test_program_that_ends_leaves_nothing_behind() {
    let mine = TestContainers::for_test("ended");
    assert!(program_with_shared_containers(&mine).wait().unwrap().success());
    mine.wait_for("left by a program that has ended", <[String]>::is_empty);
}

#[test]
#[ignore = "needs a container engine: .ci/run containers"]
fn a_test_program_that_is_killed_leaves_nothing_behind() {
    let mine = TestContainers::for_test("killed");
    let mut program = program_with_shared_containers(&mine);
    mine.wait_for("never started", |left| !left.is_empty());
    program.kill().unwrap();
    program.wait().unwrap();
    mine.wait_for("left by a program that was killed", <[String]>::is_empty);
}
