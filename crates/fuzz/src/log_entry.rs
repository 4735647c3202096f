//! A log entry: a batch of calls, a definition, or a change of the key window.

use fabius_engine::entry::{
    Call, Entries, begin_calls, calls, decode, encode_call, encode_checkpoint, encode_definition,
    encode_key_window, encode_nothing,
};
use fabius_program::catalog::ProcedureId;

pub(crate) fn run(bytes: &[u8]) {
    match decode(bytes) {
        Ok(Entries::Calls { time_us, bytes: encoded }) => {
            let Ok(read) = calls(encoded).collect::<Result<Vec<_>, _>>() else { return };
            let mut again = Vec::new();
            begin_calls(time_us, &mut again);
            read.iter().for_each(|call| encode_call(call, &mut again));
            let Ok(Entries::Calls { time_us: time_again, bytes: encoded }) = decode(&again) else {
                panic!("calls are not calls")
            };
            let read_again = calls(encoded).collect::<Result<Vec<_>, _>>().expect("what was written");
            assert_eq!((time_again, read_again), (time_us, read));
        }
        Ok(Entries::KeyWindow(calls)) => {
            let again = encode_key_window(calls);
            assert!(matches!(decode(&again), Ok(Entries::KeyWindow(again)) if again == calls));
        }
        Ok(Entries::Nothing) => assert_eq!(encode_nothing(), bytes),
        Ok(Entries::Checkpoint) => assert_eq!(encode_checkpoint(), bytes),
        Ok(Entries::Definition(text)) => assert_eq!(encode_definition(text), bytes),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut batch = Vec::new();
    begin_calls(1_700_000_000_000_000, &mut batch);
    for (procedure, key) in [(0, None), (200, Some(&b"key"[..])), (u32::MAX, Some(&[]))] {
        let arguments = vec![7; procedure as usize % 300];
        let wants_result = key.is_some();
        encode_call(
            &Call { procedure: ProcedureId(procedure), arguments: &arguments, key, wants_result },
            &mut batch,
        );
    }
    let definition = encode_definition("procedure p() {\n}\n");
    vec![batch, definition, encode_key_window(10_000_000), encode_nothing(), encode_checkpoint()]
}
