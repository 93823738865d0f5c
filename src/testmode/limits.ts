/** Sets the limits of the test server. */
export const testModeLimits = {
  worlds_max: 1_000,
  world_people_max: 20,
  world_faults_max: 100,
  fault_delay_ms_max: 60_000,
  fault_times_max: 1_000,
  fault_retry_after_max: 3_600,
  worlds_spare: 16,
  worlds_made_at_once: 4,
  recorded_entries_max: 20_000,
  recorded_bytes_max: 64 * 1024 * 1024,
  recorded_entry_bytes_max: 64 * 1024,
  recording_page_max: 1_000,
  recording_wait_ms_max: 30_000,
  recording_waits_max: 1_000,
} as const;
