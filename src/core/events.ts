import type { ErrorCode } from './errors.ts'
import type { Usage } from './usage.ts'

/** How an answer ended. */
export type Ending = 'completed' | 'failed' | 'abandoned'

/** Something a host may want to count, store or alert on. No event holds a prompt, an answer or a credential. */
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
       * A request was answered with an error before it was held for and announced: credentials, body, limits, balance, no
       * such route or model, a video that no vendor took. Instead of `request-started` and `request-ended`.
       */
      readonly type: 'request-refused'
      readonly requestId: string
      /** Undefined where the route is none that calls a model. */
      readonly endpoint: string | undefined
      /** Undefined until the caller is known. */
      readonly accountId: string | undefined
      readonly keyId: string | undefined
      /** Undefined until the body was checked, and where there is none. */
      readonly model: string | undefined
      readonly status: number
      readonly code: ErrorCode
    }
  | {
      readonly type: 'attempt-failed'
      readonly requestId: string
      readonly vendor: string
      readonly model: string
      readonly reason: string
      readonly status: number | undefined
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
      /** A key at a vendor, or a model behind it, is left alone for a while: others are asked first. */
      readonly type: 'vendor-key-ejected'
      readonly vendor: string
      /** Names the key without telling it, as `gateway.routes()` does. */
      readonly account: string
      /** Public id of the model that alone is left alone; undefined: the key is, for every model. */
      readonly model: string | undefined
      /** `failing`: the vendor is at fault. `busy`: too many requests. `refused`: key, account or quota. */
      readonly reason: 'failing' | 'busy' | 'refused'
      /** Unix milliseconds at which one request will find out whether it is well again. */
      readonly untilMs: number
    }
  | {
      /** A key, or a model behind it, that was left alone has answered. */
      readonly type: 'vendor-key-recovered'
      readonly vendor: string
      readonly account: string
      readonly model: string | undefined
    }
  | {
      readonly type: 'usage-implausible'
      readonly requestId: string
      readonly vendor: string
      readonly model: string
      readonly fields: readonly string[]
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
      /** Charged, in nano-dollars; 0 when billing is off or nothing was charged. */
      readonly costNanoDollars: bigint
      readonly durationMs: number
    }
  | {
      /**
       * The store did not take the end of a hold, or did not say so, and it is tried no more. Where money was to be charged and
       * the journal has no charge of the hold, the operator alone can still do it: the hold ends by its expiry, and its account
       * gets the money back.
       */
      readonly type: 'settlement-given-up'
      readonly requestId: string
      /** Undefined with billing off: then only a task or an Idempotency-Key is lost. */
      readonly holdId: string | undefined
      /** Of the submission of a task, else undefined. */
      readonly taskId: string | undefined
      readonly accountId: string
      readonly keyId: string
      /** What was to be charged, in nano-dollars; of a task that a vendor has taken what was held; 0: nothing. */
      readonly amountNanoDollars: bigint
      /**
       * `expired`: its time is over. `too-many`: too many settlements wait. `closing`: the gateway ends. `hold-ended`: the hold had
       * ended when the store took it.
       */
      readonly reason: 'expired' | 'too-many' | 'closing' | 'hold-ended'
      /** What the store said last; undefined where it said nothing. */
      readonly error: unknown
    }
  | {
      readonly type: 'task-submitted'
      readonly requestId: string
      readonly taskId: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
      readonly vendor: string
      /** `unknown`: the vendor was asked and no answer came. */
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
      readonly state: 'completed' | 'failed' | 'cancelled'
      readonly code: string | undefined
      readonly usage: Usage | undefined
      readonly costNanoDollars: bigint
      /** From submission to now. */
      readonly durationMs: number
    }
  | {
      readonly type: 'webhook-attempted'
      readonly deliveryId: string
      readonly taskId: string
      readonly accountId: string
      /** What became of the message: `pending` means that it will be tried again. */
      readonly state: 'pending' | 'delivered' | 'failed' | 'disabled'
      readonly status: number | undefined
      readonly error: string | undefined
      readonly attempts: number
    }
  | {
      /** The shared limits cannot be reached; each process keeps its share of them by itself until `limits-recovered`. */
      readonly type: 'limits-degraded'
      /** `deadline`: no answer in time. `error`: the server refused, or the connection is gone. */
      readonly reason: 'deadline' | 'error'
      readonly error: unknown
    }
  | {
      readonly type: 'limits-recovered'
      /** How long the limits were kept by each process alone. */
      readonly degradedMs: number
    }
  | {
      readonly type: 'internal-error'
      readonly requestId: string | undefined
      readonly where: string
      readonly error: unknown
    }

/** Receives events. Called synchronously; what it throws is caught and logged. */
export type EventListener = (event: GatewayEvent) => void
