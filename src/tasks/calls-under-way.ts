import { CallsUnderWay } from '../core/calls-under-way.ts'
import type { StageContext } from '../stages/stage-context.ts'

const callsByContext = new WeakMap<StageContext, CallsUnderWay>()

/**
 * Calls of one gateway about tasks that no submission waits for: questions to vendors, and downloads. A gateway that closes
 * waits for them for a while and aborts the rest; otherwise one caller that has stopped reading could keep it open for ever.
 */
export function callsUnderWay(context: StageContext): CallsUnderWay {
  const known = callsByContext.get(context)
  if (known !== undefined) return known
  const calls = new CallsUnderWay()
  callsByContext.set(context, calls)
  return calls
}
