import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock, Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import type { ClientAddress } from '../core/forwarded-address.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { Logger } from '../core/logger.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { operatorRefusal, SHORTEST_OPERATOR_KEY } from '../gateway/operator-key.ts'
import { bearerToken } from '../pipeline/authenticate.ts'

/**
 * What operators may do. `read`: look at everything but content. `write`: accounts, keys, vendors, tasks, webhooks. `money`:
 * credits, corrections, refunds, holds, credit limits. `play`: new calls in the name of an account. `content`: whatever shows
 * prompts or answers. This includes error texts of tasks, new keys of callers, and calls that refer to what an account has stored.
 */
export const OPERATOR_SCOPES = ['read', 'write', 'money', 'play', 'content'] as const
/** One of {@link OPERATOR_SCOPES}. */
export type OperatorScope = (typeof OPERATOR_SCOPES)[number]

/** Who operates the gateway. */
export interface Operator {
  /** For events and logs: 1 to 64 letters, digits or `._@-`. */
  readonly name: string
  readonly can: readonly OperatorScope[]
}

/** A key that operators send as bearer token. */
export interface OperatorKey {
  /** At least 24 characters without spaces. */
  readonly key: string
  /** As of {@link Operator}. */
  readonly name: string
  /** Default: everything. */
  readonly can?: readonly OperatorScope[] | undefined
}

const OPERATOR_KEY_MEMBERS = {
  key: true,
  name: true,
  can: true,
} satisfies MemberNames<OperatorKey>

/** What a host's own check reads of a request. */
export type OperatorRequest = Pick<GatewayRequest, 'method' | 'path' | 'header' | 'remoteAddress'>

/** How operators are told from others. At least one of `operatorKeys` and `authorize` is needed. */
export interface OperatorRules {
  /** Keys of operators, each with a name for the log. */
  readonly operatorKeys?: readonly OperatorKey[] | undefined
  /**
   * The host's own check, by its session for instance; undefined: not an operator. One that fails, or takes more than 10
   * seconds, refuses the request with 503.
   */
  readonly authorize?: ((request: OperatorRequest) => MaybePromise<Operator | undefined>) | undefined
  /**
   * Address of the client, for the limit of 5 wrong keys a minute. Default: the other end of the connection. Behind a proxy that is the
   * proxy, so give {@link forwardedAddress}.
   */
  readonly clientAddress?: ClientAddress | undefined
}

/** An operator, and how he was told from others. */
export interface IdentifiedOperator extends Operator {
  /** True for a bearer token, which no browser sends by itself. False: the host's own check, which may rest on a cookie. */
  readonly hasKey: boolean
}

const LONGEST_CHECK_MS = 10_000

/** Tells operators from others. Closed where nothing is configured. */
export class Operators {
  readonly #keys: readonly { readonly digest: Buffer; readonly operator: Operator }[]
  readonly #rules: OperatorRules
  readonly #clock: Clock
  readonly #logger: Logger

  /** @throws TypeError for rules that identify no operator, and for bad keys, names and scopes. */
  constructor(rules: OperatorRules, clock: Clock, logger: Logger) {
    const { operatorKeys = [], authorize } = rules
    if (operatorKeys.length === 0 && authorize === undefined)
      throw new TypeError('give operatorKeys or authorize: without one of them no operator can be identified')
    for (const [index, key] of operatorKeys.entries())
      checkMembers(key, OPERATOR_KEY_MEMBERS, '', `operatorKeys[${index}]`)
    this.#keys = operatorKeys.map(({ key, name, can = OPERATOR_SCOPES }) => {
      if (typeof key !== 'string' || key.length < SHORTEST_OPERATOR_KEY || /\s/.test(key))
        throw new TypeError(`operatorKeys: a key must have at least ${SHORTEST_OPERATOR_KEY} characters and no spaces`)
      return { digest: digestOf(key), operator: checkedOperator({ name, can }) }
    })
    this.#rules = rules
    this.#clock = clock
    this.#logger = logger
  }

  /**
   * The sender of a request.
   * @throws GatewayError `invalid_api_key`, `rate_limited` after too many wrong keys, or `store_unavailable` when the host's own
   *   check failed.
   */
  async identify(request: GatewayRequest): Promise<IdentifiedOperator> {
    const token = bearerToken(request.header('authorization'))
    const operator = token === undefined ? undefined : this.#byKey(token)
    if (operator !== undefined) return { ...operator, hasKey: true }
    const vouched = await this.#byHost(request)
    if (vouched !== undefined) return { ...checkedOperator(vouched), hasKey: false }
    throw operatorRefusal(request, this.#clock, this.#rules.clientAddress)
  }

  /** Compares with every key, so that the duration tells nothing about them. */
  #byKey(token: string): Operator | undefined {
    const digest = digestOf(token)
    let found: Operator | undefined
    for (const key of this.#keys) if (timingSafeEqual(digest, key.digest)) found = key.operator
    return found
  }

  async #byHost(request: GatewayRequest): Promise<Operator | undefined> {
    const { authorize } = this.#rules
    if (authorize === undefined) return undefined
    let timer: Timer | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = this.#clock.schedule(LONGEST_CHECK_MS, () => reject(new Error('authorize took too long')))
    })
    try {
      return await Promise.race([authorize(request), late])
    } catch (cause) {
      this.#logger.error('authorize failed, so the request was refused', { error: cause })
      throw new GatewayError('store_unavailable', { message: 'The operator could not be identified.', cause })
    } finally {
      timer?.cancel()
    }
  }
}

/** @throws TypeError for a name that does not fit in a line of a log, and for unknown scopes. */
function checkedOperator({ name, can }: Operator): Operator {
  if (typeof name !== 'string' || !/^[\w.@-]{1,64}$/.test(name))
    throw new TypeError('the name of an operator must be 1 to 64 letters, digits or ._@-')
  const unknown = can.find((scope) => !OPERATOR_SCOPES.includes(scope))
  if (unknown !== undefined)
    throw new TypeError(`${JSON.stringify(unknown)} is none of the scopes ${OPERATOR_SCOPES.join(', ')}`)
  return { name, can }
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
