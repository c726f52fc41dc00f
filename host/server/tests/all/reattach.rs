//! A secured channel that goes on over a new connection: the session is still there, whether the server has noticed the end of the old
//! connection or not; nobody cuts a channel off by naming its id.

use backplane_client::{Client, Identity, OldConnection, SessionOptions};
use backplane_types::{MessageSecurityMode, SecurityTokenRequestType, StatusCode};

use crate::support::{Raw, Server, connect_secured, identity, open_chunk, open_request, read_status};

async fn secured(server: &Server) -> Client {
    let endpoints = Client::discover(&server.url()).await.unwrap();
    let client = connect_secured(server, &identity(), &endpoints[0].server_certificate)
        .await
        .unwrap();
    let options = SessionOptions {
        application_uri: "urn:backplane:test:client".into(),
        ..SessionOptions::default()
    };
    client.open_session(options, &Identity::Anonymous).await.unwrap();
    client
}

#[tokio::test]
async fn the_session_goes_on_over_a_new_connection() {
    let server = Server::demo();
    let client = secured(&server).await;
    read_status(&client).await.unwrap();
    for old in [
        OldConnection::Unnoticed,
        OldConnection::Closed,
        OldConnection::Unnoticed,
        OldConnection::Closed,
    ] {
        client.reconnect(old).await.unwrap();
        // The same session, without another activation.
        read_status(&client).await.unwrap();
        client.renew().await.unwrap();
        read_status(&client).await.unwrap();
    }
    client.close_session(true).await.unwrap();
    client.close().await;
}

#[tokio::test]
async fn naming_the_id_of_a_channel_does_it_no_harm() {
    let server = Server::demo();
    let client = secured(&server).await;
    // Ids are given one after the other: the channel's is among these.
    let near = Raw::opened(&server).await.channel;
    for id in near.saturating_sub(10)..near {
        let mut raw = Raw::greeted(&server).await;
        let body = open_request(SecurityTokenRequestType::RENEW, MessageSecurityMode::NONE);
        raw.send(&open_chunk(id, None, None, 1, &body)).await;
        assert_eq!(
            raw.error().await,
            Some(StatusCode::BAD_TCP_SECURE_CHANNEL_UNKNOWN),
            "channel {id}"
        );
    }
    read_status(&client).await.unwrap();
    client.close_session(true).await.unwrap();
}
