import type { ErrorCode } from './errors.ts'
import type { HookEvent } from './hook-events.ts'
import type { Usage } from './usage.ts'

/** How an answer ended. */
export type Ending = 'completed' | 'failed' | 'abandoned'

/** An event for the host to count, store or alert on. No event contains a prompt, an answer or a credential. */
export type GatewayEvent =
  | {
      readonly type: 'request-started'
      readonly requestId: string
      readonly endpoint: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
    }
  | {
      /**
       * A request was refused before its hold: credentials, body, limits, balance, unknown route or model, or a video that
       * no vendor accepted. Replaces `request-started` and `request-ended`.
       */
      readonly type: 'request-refused'
      readonly requestId: string
      /** Undefined for routes that call no model. */
      readonly endpoint: string | undefined
      /** Undefined until the caller is known. */
      readonly accountId: string | undefined
      readonly keyId: string | undefined
      /** Undefined if the body was not checked yet, or there is none. */
      readonly model: string | undefined
      readonly status: number
      readonly code: ErrorCode
    }
  | {
      /** A call to a vendor failed, before or after its answer had begun. */
      readonly type: 'attempt-failed'
      readonly requestId: string
      readonly vendor: string
      /** Credential id of the key, as in `gateway.routes()`; does not reveal the key. */
      readonly credentialId: string
      readonly model: string
      readonly reason: string
      /** The vendor's; undefined when it sent none. */
      readonly status: number | undefined
      /** The vendor's code, or the network's, such as `ECONNREFUSED`. */
      readonly code: string | undefined
      /**
       * The vendor's text, or the network's, without credentials, for the operator; at most 500 characters. Undefined when the vendor
       * blames the request: such a text may quote the prompt.
       */
      readonly message: string | undefined
      /** The vendor's own id of the request. */
      readonly vendorRequestId: string | undefined
    }
  | {
      /** A model was not asked, because the request is larger than its context window; a fallback that holds it was. */
      readonly type: 'model-skipped'
      readonly requestId: string
      /** The requested model. */
      readonly model: string
      readonly reason: 'context_length_exceeded'
      /** Estimate of the prompt, with the output that the request asks for. */
      readonly estimatedTokens: number
      readonly contextTokens: number
      /** The first fallback that holds it. */
      readonly fallback: string
    }
  | {
      /** A request named a model that its vendor ends within 60 days, or has ended. Each process emits it once per model and UTC day. */
      readonly type: 'model-retiring'
      /** Public id of the requested model. */
      readonly model: string
      /** Id of the vendor in the row of the model. */
      readonly vendor: string
      /** Day of the retirement, such as `2026-12-31`. */
      readonly retires: string
    }
  | {
      readonly type: 'vendor-account-problem'
      readonly requestId: string
      readonly vendor: string
      readonly status: number
      readonly code: string | undefined
      readonly message: string
    }
  | {
      /**
       * A vendor has sent no byte for 15 seconds in a stream, or for 60 seconds in another call or one of a model whose silence is
       * usual. The call goes on. Emitted once for each call to a vendor.
       */
      readonly type: 'vendor-silent'
      readonly requestId: string
      readonly vendor: string
      /** Credential id of the key, as in `gateway.routes()`. */
      readonly credentialId: string
      /** Public id of the model. */
      readonly model: string
      /** Least duration of the silence, in milliseconds: 15,000 or 60,000. */
      readonly silentMs: number
    }
  | {
      /** The circuit breaker of a vendor key, or of a model behind it, opened: other candidates go first. */
      readonly type: 'circuit-opened'
      readonly vendor: string
      /** Credential id of the key, as in `gateway.routes()`; does not reveal the key. */
      readonly credentialId: string
      /** Public id of the model whose circuit it is; undefined: the key's circuit, for every model. */
      readonly model: string | undefined
      /** `failing`: the vendor is at fault. `busy`: too many requests. `refused`: key, account or quota. `operator`: by hand. */
      readonly reason: 'failing' | 'busy' | 'refused' | 'operator'
      /** Unix milliseconds at which it becomes half-open: one request then probes it. */
      readonly untilMs: number
    }
  | {
      /** An open circuit closed: a call was answered. */
      readonly type: 'circuit-closed'
      readonly vendor: string
      readonly credentialId: string
      readonly model: string | undefined
    }
  | {
      /** A vendor reported usage that cannot be right: malformed and missing counts are estimated, and counts that are too high are cut. */
      readonly type: 'usage-implausible'
      readonly requestId: string
      readonly vendor: string
      readonly model: string
      /** Names of the counts of {@link Usage}. */
      readonly fields: readonly string[]
      /** These counts as the vendor reported them; those that it did not report are absent. */
      readonly reported: Readonly<Record<string, unknown>>
      /** These counts as they are charged. */
      readonly charged: Usage
      /** Cost of the report as it was received, in nano-dollars; undefined if a count is missing or malformed, or if billing is off. */
      readonly reportedNanoDollars: bigint | undefined
      /** Cost of what is charged for, in nano-dollars; undefined if billing is off. */
      readonly dueNanoDollars: bigint | undefined
    }
  | {
      /** A vendor answered in full and reported no usage: the call is charged by an estimate. */
      readonly type: 'usage-missing'
      readonly requestId: string
      readonly vendor: string
      readonly model: string
      /** What is charged for instead. */
      readonly usage: Usage
    }
  | {
      /** A caller disconnected before the vendor reported usage: the call is charged by an estimate. */
      readonly type: 'call-abandoned'
      readonly requestId: string
      readonly vendor: string
      readonly model: string
      /** Time from the request to the end of the call at the vendor, in milliseconds. */
      readonly elapsedMs: number
      /** Usage that is charged. */
      readonly usage: Usage
    }
  | {
      /** A vendor bills, or may bill, a failed call that no account is charged for. */
      readonly type: 'unbilled-usage'
      readonly requestId: string
      readonly accountId: string
      readonly keyId: string
      readonly vendor: string
      readonly model: string
      readonly usage: Usage
      /**
       * False: the vendor reported this usage. True: it reported nothing, and this is the estimate of the prompt and of the answer
       * as far as it was announced; the vendor may bill it, or nothing.
       */
      readonly isEstimated: boolean
    }
  | {
      readonly type: 'request-ended'
      readonly requestId: string
      readonly endpoint: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
      readonly vendor: string | undefined
      readonly ending: Ending
      readonly status: number
      readonly code: ErrorCode | undefined
      readonly usage: Usage | undefined
      /** What the call had used whose answer was given again from the cache. Nothing of it was used this time. Undefined: none was. */
      readonly cachedUsage?: Usage | undefined
      /** Charged, in nano-dollars; 0 when billing is off or nothing was charged. */
      readonly costNanoDollars: bigint
      /** What the usage costs, in nano-dollars: more than was charged where the balance lacked it or the store could not be told. */
      readonly dueNanoDollars: bigint
      readonly durationMs: number
      /** Tags of the call: those of the key, then those of the request. */
      readonly tags: readonly string[]
    }
  | {
      /** A request was answered from the cache. */
      readonly type: 'cache-hit'
      readonly requestId: string
      readonly endpoint: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
      /** How long ago the answer was made. */
      readonly ageMs: number
      /** True where the answer was no longer fresh, and no vendor gave another one. */
      readonly isStale: boolean
    }
  | {
      /** An answer was not kept, because the cache could not take it. The caller has it all the same. */
      readonly type: 'cache-write-failed'
      readonly requestId: string
      readonly error: unknown
    }
  | {
      /**
       * The store did not confirm the end of a hold, and no more attempts follow. If money was due and the journal has no charge
       * for the hold, only the operator can still charge it: the hold expires, and its account gets the money back.
       */
      readonly type: 'settlement-given-up'
      readonly requestId: string
      /** Undefined with billing off: then only a task or an Idempotency-Key is lost. */
      readonly holdId: string | undefined
      /** Set for the submission of a task. */
      readonly taskId: string | undefined
      readonly accountId: string
      readonly keyId: string
      /** Amount due, in nano-dollars; the amount held for a task that a vendor has accepted; 0: nothing. */
      readonly amountNanoDollars: bigint
      /**
       * `expired`: the time for retries is over, or nobody has run a batch for a year. `too-many`: too many settlements wait.
       * `closing`: the gateway is closing.
       * `hold-ended`: the hold had already ended when the store accepted it.
       */
      readonly reason: 'expired' | 'too-many' | 'closing' | 'hold-ended'
      /** The store's last error; undefined when it gave none. */
      readonly error: unknown
    }
  | {
      /**
       * A charge was above the balance. The account owes the rest: its requests are refused with `account_in_arrears`, and its
       * next credit pays the debt first.
       */
      readonly type: 'charge-shortfall'
      readonly requestId: string
      /** Set when it was a task that was charged. */
      readonly taskId: string | undefined
      readonly accountId: string
      readonly keyId: string
      /** What the call cost, in nano-dollars. */
      readonly dueNanoDollars: bigint
      /** What the balance paid of it. */
      readonly chargedNanoDollars: bigint
      /** What is owed of it from now on. */
      readonly owedNanoDollars: bigint
    }
  | {
      /** A charge has passed a share of a spending cap. Each share is told once a period, whichever process charged. */
      readonly type: 'cap-reached'
      readonly requestId: string
      readonly accountId: string
      readonly keyId: string
      /** Whose cap it is. */
      readonly owner: 'account' | 'key'
      readonly period: 'day' | 'month'
      readonly thresholdPercent: number
      readonly capNanoDollars: bigint
      /** Charged in the period so far. */
      readonly chargedNanoDollars: bigint
    }
  | {
      /**
       * A charge has passed a share of what there was to spend: of the balance after the latest credit, or of the credit limit of a
       * metered account. Each share is told once, whichever process charged.
       */
      readonly type: 'balance-low'
      readonly requestId: string
      readonly accountId: string
      readonly keyId: string
      readonly of: 'balance' | 'credit_limit'
      /** How much of it is used. */
      readonly thresholdPercent: number
      /** What there was to spend. */
      readonly totalNanoDollars: bigint
      /** What is left of it, holds included; 0 where more is owed than the limit. */
      readonly remainingNanoDollars: bigint
    }
  | {
      /** The operator has frozen an account: its calls are refused with `account_frozen`. */
      readonly type: 'account-frozen'
      readonly accountId: string
      readonly reason: string
    }
  | {
      readonly type: 'task-submitted'
      readonly requestId: string
      readonly taskId: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
      readonly vendor: string
      /** `unknown`: the request was sent but not answered. */
      readonly state: 'queued' | 'unknown'
    }
  | {
      readonly type: 'task-ended'
      /** Id of the request that submitted it. */
      readonly requestId: string
      readonly taskId: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
      readonly vendor: string
      /** Endpoint of the submission. */
      readonly endpoint: string
      readonly state: 'completed' | 'failed' | 'cancelled'
      readonly code: string | undefined
      readonly usage: Usage | undefined
      /** Charged, in nano-dollars. */
      readonly costNanoDollars: bigint
      /** What it costs, in nano-dollars: more than was charged where the balance lacked it, which is owed. */
      readonly dueNanoDollars: bigint
      /** From submission to now. */
      readonly durationMs: number
      /** Tags of the submission, as in `request-ended`. */
      readonly tags: readonly string[]
    }
  | {
      readonly type: 'webhook-attempted'
      readonly deliveryId: string
      readonly taskId: string
      readonly accountId: string
      /** State after the attempt; `pending`: another attempt follows. */
      readonly state: 'pending' | 'delivered' | 'failed' | 'disabled'
      readonly status: number | undefined
      readonly error: string | undefined
      readonly attempts: number
    }
  | {
      /**
       * A credential provider gave nothing that can be used. Calls go on with the old credential while it holds, and answer 503
       * after that.
       */
      readonly type: 'credential-refresh-failed'
      readonly vendor: string
      /** Credential id of the slot, as in `gateway.routes()`. */
      readonly credentialId: string
      /** The provider's message. */
      readonly message: string
      /** Unix milliseconds of the next attempt to refresh. */
      readonly retryAtMs: number
    }
  | {
      /** The store does not answer: a request or another step failed, and so did a probe of the store. */
      readonly type: 'store-unavailable'
      /** The first error of the store. */
      readonly error: unknown
    }
  | {
      readonly type: 'store-recovered'
      /** Time from the first failure to the first successful probe, in milliseconds. */
      readonly downMs: number
      /** Number of requests that failed meanwhile because of the store. */
      readonly failedRequests: number
      /** Number of other steps that failed meanwhile: settlements, background work and health checks. */
      readonly otherFaults: number
    }
  | {
      /** The shared limits cannot be reached; each process enforces its own share until `limits-recovered`. */
      readonly type: 'limits-degraded'
      /** `deadline`: no answer in time. `error`: the server refused, or the connection was lost. */
      readonly reason: 'deadline' | 'error'
      readonly error: unknown
    }
  | {
      readonly type: 'limits-recovered'
      /** How long each process enforced its own share. */
      readonly degradedMs: number
    }
  | {
      /** Something in the configuration has no effect, or another one than its words say. Each is told once. */
      readonly type: 'configuration-warning'
      /**
       * `price-unused`: no call can ever be charged by a row of the price list. `model-unpriced`: models that the operator's
       * own rows of models or prices name have no price, or only a part of one, and are refused. `fallback-unpriced`: a fallback has no price and is left out. `fallback-unreachable`: a
       * fallback can never answer, because none of its vendors has a key. `state-secret-missing`: several processes may share the
       * store without `responses.stateSecret`. `task-key-missing`: no key can follow the tasks of one that was taken away.
       * `cache-writes-unpriced`: `promptCaching: 'auto'` has no effect for a model without a price of cache writes.
       * `hook-units-unpriced`: a hook charges `hook_unit` for a model that has no price for it, and its requests are refused.
       * `vendor-unconfigured`: a row of models, a fallback, a price or a call names a vendor that has no key or is not listed.
       * `catalog-refused`: a newer catalog cannot be loaded, and the one in force stays. `retention-changed`: processes of one store
       * name different retention periods, and the one that was named last applies.
       */
      readonly code:
        | 'price-unused'
        | 'model-unpriced'
        | 'fallback-unpriced'
        | 'fallback-unreachable'
        | 'state-secret-missing'
        | 'task-key-missing'
        | 'cache-writes-unpriced'
        | 'hook-units-unpriced'
        | 'vendor-unconfigured'
        | 'catalog-refused'
        | 'retention-changed'
      readonly message: string
    }
  | {
      /** Records of calls that were not charged are lost; those of charged calls never are. */
      readonly type: 'usage-dropped'
      readonly records: number
      /** The store's; undefined when too many waited for it. */
      readonly error: unknown
    }
  | HookEvent
  | ({
      /** An operator has changed something, or tried to, through the admin API. */
      readonly type: 'operator-action'
    } & OperatorAction)
  | {
      readonly type: 'internal-error'
      readonly requestId: string | undefined
      readonly where: string
      readonly error: unknown
    }

/** What an operator did. Contains no key and no secret. */
export interface OperatorAction {
  readonly requestId: string
  /** Name of the operator. */
  readonly operator: string
  /** Id of the operation in the OpenAPI document: `credit_account`. */
  readonly action: string
  /** What was changed: an id of an account, a key, a hold; undefined: nothing that has an id. */
  readonly target: string | undefined
  /** What was asked for, as it was sent. */
  readonly input: Readonly<Record<string, unknown>>
  /** HTTP status of the answer. */
  readonly status: number
  /** Error code; undefined: it was done. */
  readonly code: ErrorCode | undefined
}

/** Receives events. Called synchronously; what it throws is caught and logged. */
export type EventListener = (event: GatewayEvent) => void
