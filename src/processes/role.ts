/** A part of a process that runs until it is stopped. */
export interface Role {
  stop(): Promise<void>;
}
