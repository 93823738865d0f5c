export interface Role {
  stop(): Promise<void>;
}
