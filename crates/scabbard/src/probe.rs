use grid_batch_http::join;

use crate::Scabbard;

impl Scabbard {
    /// Asks for the status of the node. Any response shows that it answers, also a refusal of the request.
    pub(crate) async fn ask_whether_it_answers(&self, node: &str) {
        if let Ok(url) = join(node, "status") {
            drop(self.0.probe_client.get(&url, &[]).await);
        }
    }
}
