import type { ErrorCode } from './errors.ts'
import type { Usage } from './usage.ts'

/** Outcome of an answer. */
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
       * A request was rejected before its hold was created: credentials, body, limits, balance, unknown route or model, or a
       * video that no vendor accepted. Replaces `request-started` and `request-ended`.
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
      /** HTTP status of the vendor, or `undefined` if it sent none. */
      readonly status: number | undefined
      /** Error code of the vendor, or of the network, such as `ECONNREFUSED`. */
      readonly code: string | undefined
      /**
       * Error text of the vendor or the network, without credentials, for the operator; at most 500 characters. `undefined` if
       * the vendor blames the request, because such a text may quote the prompt.
       */
      readonly message: string | undefined
      /** The vendor's own id of the request. */
      readonly vendorRequestId: string | undefined
    }
  | {
      /** A model was skipped because the request exceeds its context window. A fallback with a larger window was called instead. */
      readonly type: 'model-skipped'
      readonly requestId: string
      /** The requested model. */
      readonly model: string
      readonly reason: 'context_length_exceeded'
      /** Estimated tokens of the prompt plus the requested output. */
      readonly estimatedTokens: number
      readonly contextTokens: number
      /** First fallback whose context window is large enough. */
      readonly fallback: string
    }
  | {
      /**
       * A request named a model that its vendor retires within 60 days, or has retired. Emitted once per process, model and UTC
       * day.
       */
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
       * A vendor has sent no byte for 15 seconds in a stream, or for 60 seconds in another call or a call of a model that is
       * often silent. The call continues. Emitted once for each call to a vendor.
       */
      readonly type: 'vendor-silent'
      readonly requestId: string
      readonly vendor: string
      /** Credential id of the key, as in `gateway.routes()`. */
      readonly credentialId: string
      /** Public id of the model. */
      readonly model: string
      /** Minimum duration of the silence, in milliseconds: 15,000 or 60,000. */
      readonly silentMs: number
    }
  | {
      /** The circuit breaker of a vendor key, or of one model of that key, opened: other candidates are tried first. */
      readonly type: 'circuit-opened'
      readonly vendor: string
      /** Credential id of the key, as in `gateway.routes()`; does not reveal the key. */
      readonly credentialId: string
      /** Public id of the model whose circuit opened, or `undefined` if the circuit of the key opened for every model. */
      readonly model: string | undefined
      /** `failing`: the vendor is at fault. `busy`: too many requests. `refused`: key, account or quota. `operator`: manually. */
      readonly reason: 'failing' | 'busy' | 'refused' | 'operator'
      /** Time at which the circuit becomes half-open, in Unix milliseconds. One request then probes it. */
      readonly untilMs: number
    }
  | {
      /** An open circuit closed because a call succeeded. */
      readonly type: 'circuit-closed'
      readonly vendor: string
      readonly credentialId: string
      readonly model: string | undefined
    }
  | {
      /** A vendor reported impossible usage. Malformed and missing counts are estimated, and counts that are too high are reduced. */
      readonly type: 'usage-implausible'
      readonly requestId: string
      readonly vendor: string
      readonly model: string
      /** Names of the affected counts of {@link Usage}. */
      readonly fields: readonly string[]
      /** Affected counts as the vendor reported them. Counts that it did not report are absent. */
      readonly reported: Readonly<Record<string, unknown>>
      /** Affected counts as they are charged. */
      readonly charged: Usage
      /** Cost of the report as it was received, in nano-dollars; undefined if a count is missing or malformed, or if billing is off. */
      readonly reportedNanoDollars: bigint | undefined
      /** Cost of the charged usage, in nano-dollars; undefined if billing is off. */
      readonly dueNanoDollars: bigint | undefined
    }
  | {
      /** A vendor answered in full but reported no usage. The call is charged by an estimate. */
      readonly type: 'usage-missing'
      readonly requestId: string
      readonly vendor: string
      readonly model: string
      /** Estimated usage that is charged. */
      readonly usage: Usage
    }
  | {
      /** A caller disconnected before the vendor reported usage. The call is charged by an estimate. */
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
       * Whether the usage is an estimate of the prompt and of the announced answer, because the vendor reported none. The vendor
       * may bill all or none of it. `false` if the vendor reported the usage.
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
      /** Usage of the original call if the answer came from the cache. This request used none of it. */
      readonly cachedUsage?: Usage | undefined
      /** Charge in nano-dollars; 0 if billing is off or nothing was charged. */
      readonly costNanoDollars: bigint
      /** Cost of the usage, in nano-dollars. Exceeds the charge if the balance was too low or the store was unreachable. */
      readonly dueNanoDollars: bigint
      readonly durationMs: number
      /** Tags of the call: tags of the key first, then tags of the request. */
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
      /** Age of the cached answer, in milliseconds. */
      readonly ageMs: number
    }
  | {
      /** An answer was not cached because the cache rejected it. The caller still received the answer. */
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
      /** Undefined if billing is off; then only a task or an Idempotency-Key is lost. */
      readonly holdId: string | undefined
      /** Set for the submission of a task. */
      readonly taskId: string | undefined
      readonly accountId: string
      readonly keyId: string
      /** Amount due in nano-dollars, or the hold of a task that a vendor has accepted; 0 if nothing is due. */
      readonly amountNanoDollars: bigint
      /**
       * `expired`: the time for retries is over, or nobody has run a batch for a year. `too-many`: too many settlements wait.
       * `closing`: the gateway is closing.
       * `hold-ended`: the hold had already ended when the store accepted it.
       */
      readonly reason: 'expired' | 'too-many' | 'closing' | 'hold-ended'
      /** Last error of the store, or `undefined` if there was none. */
      readonly error: unknown
    }
  | {
      /**
       * A charge was above the balance. The account owes the rest: its requests are rejected with `account_in_arrears`, and its
       * next credit pays the debt first.
       */
      readonly type: 'charge-shortfall'
      readonly requestId: string
      /** Id of the task, if a task was charged. */
      readonly taskId: string | undefined
      readonly accountId: string
      readonly keyId: string
      /** Cost of the call, in nano-dollars. */
      readonly dueNanoDollars: bigint
      /** Part of the cost that the balance paid, in nano-dollars. */
      readonly chargedNanoDollars: bigint
      /** Part of the cost that the account owes, in nano-dollars. */
      readonly owedNanoDollars: bigint
    }
  | {
      /** A charge has passed a threshold of a spending cap. Emitted once per threshold and period, whichever process charged. */
      readonly type: 'cap-reached'
      readonly requestId: string
      readonly accountId: string
      readonly keyId: string
      /** Owner of the cap. */
      readonly owner: 'account' | 'key'
      readonly period: 'day' | 'month'
      readonly thresholdPercent: number
      readonly capNanoDollars: bigint
      /** Charges of the period so far, in nano-dollars. */
      readonly chargedNanoDollars: bigint
    }
  | {
      /**
       * A charge has passed a threshold of the balance after the latest credit, or of the credit limit of a metered account.
       * Emitted once per threshold, whichever process charged.
       */
      readonly type: 'balance-low'
      readonly requestId: string
      readonly accountId: string
      readonly keyId: string
      readonly of: 'balance' | 'credit_limit'
      /** Percentage that is used. */
      readonly thresholdPercent: number
      /** Balance after the latest credit, or credit limit, in nano-dollars. */
      readonly totalNanoDollars: bigint
      /** Remaining part, holds included, in nano-dollars; 0 if the debt exceeds the limit. */
      readonly remainingNanoDollars: bigint
    }
  | {
      /** The operator has frozen an account. Its calls are rejected with `account_frozen`. */
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
      /** Charge in nano-dollars. */
      readonly costNanoDollars: bigint
      /** Cost in nano-dollars. Exceeds the charge if the balance was too low; the account owes the difference. */
      readonly dueNanoDollars: bigint
      /** Time from submission to now, in milliseconds. */
      readonly durationMs: number
      /** Tags of the submission, as in `request-ended`. */
      readonly tags: readonly string[]
    }
  | {
      readonly type: 'webhook-attempted'
      readonly deliveryId: string
      readonly taskId: string
      readonly accountId: string
      /** State after the attempt. `pending` means that another attempt follows. */
      readonly state: 'pending' | 'delivered' | 'failed' | 'disabled'
      readonly status: number | undefined
      readonly error: string | undefined
      readonly attempts: number
    }
  | {
      /**
       * A credential provider returned no usable credential. Calls use the old credential until it expires, and get 503 after
       * that.
       */
      readonly type: 'credential-refresh-failed'
      readonly vendor: string
      /** Credential id of the slot, as in `gateway.routes()`. */
      readonly credentialId: string
      /** Error message of the provider. */
      readonly message: string
      /** Unix milliseconds of the next attempt to refresh. */
      readonly retryAtMs: number
    }
  | {
      /** The store is unavailable: a request or another step failed, and so did a probe of the store. */
      readonly type: 'store-unavailable'
      /** First error of the store. */
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
      /** Time during which each process enforced its own share, in milliseconds. */
      readonly degradedMs: number
    }
  | {
      /** A part of the configuration has no effect, or an unexpected one. Each finding is emitted once. */
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
      /** Records of calls that were not charged are lost. Records of charged calls are never lost. */
      readonly type: 'usage-dropped'
      readonly records: number
      /** Error of the store, or `undefined` if too many records were waiting. */
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

/** Action of an operator. Contains no key and no secret. */
export interface OperatorAction {
  readonly requestId: string
  /** Name of the operator. */
  readonly operator: string
  /** Id of the operation in the OpenAPI document: `credit_account`. */
  readonly action: string
  /** Id of the changed account, key or hold, or `undefined` if the object has no id. */
  readonly target: string | undefined
  /** Input of the operation as it was sent. */
  readonly input: Readonly<Record<string, unknown>>
  /** HTTP status of the answer. */
  readonly status: number
  /** Error code, or `undefined` if the action succeeded. */
  readonly code: ErrorCode | undefined
}

/** Receives events. Called synchronously; exceptions are caught and logged. */
export type EventListener = (event: GatewayEvent) => void

/** Events of hooks; part of `GatewayEvent`. */
type HookEvent =
  | {
      /** A hook has denied a request or an answer. */
      readonly type: 'hook-denied'
      readonly requestId: string
      readonly hook: string
      readonly point: 'request' | 'answer' | 'text'
      readonly endpoint: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
      /** Error code that the caller reads, if the caller gets an error. */
      readonly code: string
    }
  | {
      /** A hook has answered a request instead of a vendor. */
      readonly type: 'hook-answered'
      readonly requestId: string
      readonly hook: string
      readonly endpoint: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
    }
  | {
      /** A hook has failed, and its input was accepted unchecked because of `onFailure: 'allow'`. */
      readonly type: 'hook-bypassed'
      readonly requestId: string
      readonly hook: string
      readonly point: 'request' | 'wire' | 'answer' | 'text' | 'failed'
      readonly endpoint: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
      readonly reason: 'threw' | 'timeout' | 'unusable-result' | 'too-large'
      readonly error: unknown
    }
