/** Shifts the wall clock of the process that preloads this file (`--import`) by SHIFTED_CLOCK_MS. */
const shiftMs = Number(process.env.SHIFTED_CLOCK_MS);
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(RealDate.now() + shiftMs);
    else super(...given);
  }
  static now() {
    return RealDate.now() + shiftMs;
  }
};
