import type { RouteCandidate } from '../../routing/route-candidate.ts'
import type { Selection } from '../../routing/selection.ts'
import type { VendorExchange } from '../exchanges/vendor-exchange.ts'
import type { RoutedRequest } from '../route.ts'
import { reportFault, type StageContext } from '../stage-context.ts'
import { type AttemptOutcome, attempt } from './attempt.ts'
import { CallGroup } from './call-group.ts'
import { abandonCall, beginCall, endFailedCall, endWholeCall } from './candidate-calls.ts'
import { prepareIfAble } from './prepare-exchange.ts'
import { nextOf } from './selection-for.ts'

/** A candidate and what is sent to it. */
interface Entrant {
  readonly candidate: RouteCandidate
  readonly exchange: VendorExchange
}

/** What becomes of a call that does not stream. */
export type UnstreamedOutcome = Exclude<AttemptOutcome, { kind: 'stream' }>

/** What a call of an entrant came to. */
interface Finish extends Entrant {
  readonly outcome: UnstreamedOutcome
}

/** Endpoints whose answers can be made twice without harm. */
const HEDGED_KINDS: ReadonlySet<string> = new Set(['chat', 'embedding'])

/** May a second candidate be asked while the first one is slow? */
export function mayHedge(context: StageContext, { endpoint, isStream }: RoutedRequest): boolean {
  if (context.routing.hedge === undefined || isStream) return false
  return HEDGED_KINDS.has(endpoint.kind)
}

/**
 * Asks a candidate, and when it takes too long another one of the same model as well, once, within the retry budget. The
 * first answer counts and the other call is cancelled; a failure counts when both have failed, or nobody else was asked.
 */
export function hedgedAttempt(
  context: StageContext,
  routed: RoutedRequest,
  first: Entrant,
  selection: Selection,
): Promise<Finish> {
  const afterMs = context.routing.hedge?.afterMs ?? 0
  return new Promise((resolve, reject) => {
    const runs: CallGroup[] = []
    let underWay = 0
    let isOver = false
    const end = (): void => {
      isOver = true
      timer.cancel()
      for (const run of runs) routed.calls.delete(run)
    }
    const enter = (entrant: Entrant): void => {
      const own = new CallGroup()
      runs.push(own)
      underWay += 1
      // A group that is over takes no calls; those of its members end at once then.
      if (!routed.calls.add(own)) own.abort()
      run(context, routed, entrant, own).then(
        (outcome) => {
          underWay -= 1
          if (isOver || (outcome.kind === 'failed' && underWay > 0)) return
          end()
          for (const other of runs) if (other !== own) other.abort()
          resolve({ ...entrant, outcome })
        },
        (fault) => {
          underWay -= 1
          if (isOver) return reportFault(context, routed.requestId, 'hedge', fault)
          end()
          for (const other of runs) other.abort()
          reject(fault)
        },
      )
    }
    const timer = context.clock.schedule(afterMs, () => {
      second(context, routed, first.candidate, selection).then(
        (entrant) => {
          if (entrant === undefined) return
          if (isOver || routed.calls.isAborted || !context.retryBudget.withdraw()) return
          selection.asked(entrant.candidate)
          enter(entrant)
        },
        (fault) => reportFault(context, routed.requestId, 'hedge', fault),
      )
    })
    enter(first)
  })
}

async function second(
  context: StageContext,
  routed: RoutedRequest,
  first: RouteCandidate,
  selection: Selection,
): Promise<Entrant | undefined> {
  if (routed.calls.isAborted || !selection.hasAlternative(first, context.clock.now())) return undefined
  const candidate = nextOf(context, selection)
  if (candidate === undefined || candidate.model.id !== first.model.id) return undefined
  const exchange = await prepareIfAble(context, routed, candidate)
  return exchange && { candidate, exchange }
}

/** One call, noted in the state of its candidate whatever becomes of it. */
async function run(
  context: StageContext,
  routed: RoutedRequest,
  { candidate, exchange }: Entrant,
  group: CallGroup,
): Promise<UnstreamedOutcome> {
  const startedAtMs = beginCall(context, candidate)
  try {
    const outcome = await attempt(context, candidate, exchange, { isStream: false, group })
    if (outcome.kind === 'stream') throw new Error('a call that was to be whole became a stream')
    if (outcome.kind === 'whole') endWholeCall(context, candidate, startedAtMs)
    else endFailedCall(context, routed, candidate, { failure: outcome.failure, isGivenUp: group.isAborted })
    return outcome
  } catch (fault) {
    abandonCall(context, candidate)
    throw fault
  }
}
