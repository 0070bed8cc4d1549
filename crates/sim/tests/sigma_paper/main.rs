//! The Sigma paper, claim by claim and in its order, shown in the simulator.
//!
//! Lin, Lian, Chen, Zhang: *A Practical Distributed Mutual Exclusion Protocol in Dynamic Peer-to-Peer
//! Systems*, 2004. One file a section; each test retells a claim and shows it, by what we ship unless the
//! claim is about something else. Claims that do not hold to the letter are in the test program
//! `literal_holes`; what Section III says of the strawman's performance (Figure 3) is in `strawman`.
//!
//! What a single replica says when it is spoken to is shown in the test program `sigma_host` of
//! `sigmalock-protocols`, and not again here:
//!
//! - II, messages are never forged:
//!   `forged_and_impossible_messages_are_noted_and_dropped`
//! - IV, a free replica grants its vote outright, another one queues the request, and either names the owner:
//!   `section_iv_a_free_replica_grants_outright_and_an_owned_one_queues_and_names_its_owner`
//! - IV, YIELD is RELEASE and REQUEST, and the earliest is chosen:
//!   `section_iv_yield_is_a_release_and_a_request_and_the_earliest_is_chosen`
//! - IV, RELEASE relinquishes or leaves the queue, and the next one is notified:
//!   `section_iv_release_by_the_owner_notifies_the_next_and_release_by_a_waiter_leaves_the_queue`
//! - IV, T_w = T_CS · (P + ½), anew with every retry:
//!   `section_iv_the_advised_wait_is_the_mean_critical_section_times_the_place_and_a_half`
//! - IV, when a lease expires the vote goes to the next:
//!   `section_iv_an_expired_lease_passes_the_vote_to_the_next`

#[path = "../stage/mod.rs"]
mod stage;

mod section_2;
mod section_3;
mod section_4a_race;
mod section_4b_faults;
mod section_5;
