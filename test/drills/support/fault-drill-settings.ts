import type { Fault } from './fault-expectations.ts'
import { CONNECTION_FAULTS, type ConnectionFault } from './fault-vendor.ts'

/** True for the long forms of the drills (`npm run drill`). */
export const isLong = process.env['DRILL'] === 'long'

/** Timeouts of the gateways in drills of faults. Sufficient for a healthy vendor on a busy machine. */
export const FAULT_TIMEOUTS = isLong
  ? { connectMs: 1_000, firstByteMs: 2_000, idleMs: 2_000, totalMs: 8_000 }
  : { connectMs: 500, firstByteMs: 800, idleMs: 800, totalMs: 3_000 }

/** Latest moment at which a call may have its answer on such a machine. */
export const ANSWERED_WITHIN_MS = FAULT_TIMEOUTS.totalMs + 3_000

/** Whether the fault occurs before a request is on the connection. */
export function isConnectionFault(fault: Fault): fault is ConnectionFault {
  return (CONNECTION_FAULTS as readonly string[]).includes(fault)
}

/** Whether tens of MiB are read before the call is given up. */
export function isLarge(fault: Fault): boolean {
  return fault === 'endless body' || fault === 'endless page'
}
