/** The part of s3rver, which has no types of its own, that tests use. */
declare module 's3rver' {
  export default class S3rver {
    constructor(options: Readonly<Record<string, unknown>>);
    run(): Promise<{ readonly port: number }>;
    close(): Promise<void>;
  }
}
