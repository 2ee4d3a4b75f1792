import type { EventListener, GatewayEvent } from '../core/events.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import { type Logger, usableLogger } from '../core/logger.ts'
import { formatDollars } from '../core/money.ts'

/** Selects the requests that are logged. */
export interface AccessLogOptions {
  /** Share of the completed requests that are logged, from 0 to 1, evenly spread. All other requests are always logged. Default 1. */
  readonly sample?: number | undefined
}

const ACCESS_LOG_OPTIONS = memberNames<AccessLogOptions>()('sample')

/**
 * Creates a listener for `onEvent` that logs one line for each finished or rejected request to a model, and for each finished task.
 * Costs are decimal dollars. Prompts, answers and credentials are not logged.
 * @param logger Logger of the host; pino is recognised.
 * @throws RangeError if the share is not from 0 to 1.
 */
export function accessLog(logger: Logger, options: AccessLogOptions = {}): EventListener {
  checkMembers(options, ACCESS_LOG_OPTIONS, 'accessLog')
  const { sample = 1 } = options
  if (!(sample >= 0 && sample <= 1)) throw new RangeError('accessLog: sample must be from 0 to 1')
  const log = usableLogger(logger)
  let owed = 0
  return (event) => {
    if (event.type === 'request-refused' || event.type === 'task-submitted') {
      const { type, ...fields } = event
      return log.info(type === 'task-submitted' ? 'task submitted' : 'request refused', fields)
    }
    if (event.type === 'task-ended') {
      const { state, ...ended } = event
      return log.info(`task ${state}`, chargedFields(ended))
    }
    if (event.type !== 'request-ended') return
    if (event.ending === 'completed') {
      owed += sample
      if (owed < 1) return
      owed -= 1
    }
    const { ending, cachedUsage, ...ended } = event
    log.info(`request ${ending}`, { ...chargedFields(ended), ...(cachedUsage === undefined ? {} : { cached: true }) })
  }
}

type TaskEnded = Extract<GatewayEvent, { readonly type: 'task-ended' }>
type Charged = Pick<TaskEnded, 'usage' | 'costNanoDollars' | 'dueNanoDollars' | 'tags'> & { readonly type: string }

function chargedFields({ type: _type, usage, costNanoDollars, dueNanoDollars, tags, ...fields }: Charged) {
  return {
    ...fields,
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    cost: formatDollars(costNanoDollars),
    ...(tags.length === 0 ? {} : { tags }),
    ...(dueNanoDollars === costNanoDollars ? {} : { due: formatDollars(dueNanoDollars) }),
  }
}
