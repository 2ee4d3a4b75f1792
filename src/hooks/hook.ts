// See docs/decisions/0012-hooks.md.

import type { Clock } from '../core/clock.ts'
import { type ErrorCode, GatewayError } from '../core/errors.ts'
import { isJsonObject } from '../core/json.ts'
import type { Logger } from '../core/logger.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { EndpointRequests } from '../endpoints/registry.ts'
import type { TextKind, TextPart } from '../endpoints/texts.ts'
import type { Principal } from '../stores/principal.ts'

/** Ids of the gateway's own endpoints. */
export type EndpointId = keyof EndpointRequests

/** Rejection of a request or an answer. */
export interface Denial {
  /** Message that the caller reads. Default: a sentence that a rule of the operator rejected it. */
  readonly message?: string
  /** Error code that the caller reads. Default `request_denied` or `answer_denied`. */
  readonly code?: string
  /** HTTP status from 400 to 499, or to 599 for answers. Default 400. */
  readonly status?: number
  /** Form of a denied answer: a refusal of the dialect, such as `finish_reason: "content_filter"` (default), or an error. */
  readonly as?: 'refusal' | 'error'
}

/** Facts of the call for every point of a hook. They contain no key and no other credential. */
export interface HookFacts {
  /** Request id that the caller reads as `x-request-id`. */
  readonly requestId: string
  /** Public id of the model. Empty if items are added to a conversation, because no model is known yet. */
  readonly model: string
  /** Authenticated caller. */
  readonly principal: Principal
  /** Tags of the call for usage records: those of the principal and of the caller. */
  readonly tags: readonly string[]
  /** Returns a header of the caller, given its lower-case name. Undefined for headers that carry credentials. */
  header(name: string): string | undefined
  /** Aborts when the hook times out, or when the caller disconnects before any vendor is called. */
  readonly signal: AbortSignal
}

/** Request with its body, by endpoint. The body is read-only: a hook returns the changed parts. */
export type HookCall<Id extends EndpointId = EndpointId> = {
  readonly [Each in Id]: HookFacts & {
    /** Endpoint id; determines the type of `body`. */
    readonly endpoint: Each
    /** Request as the previous hook has returned it. */
    readonly body: Readonly<EndpointRequests[Each]>
    /** Whether the caller requests a stream. */
    readonly isStream: boolean
    /** Returns all texts that a model would read, as the caller wrote them. */
    texts(): readonly TextPart[]
    /**
     * Charges whole units of the hook's own work at the price `hook_unit` of the model: with the call, with a cache hit, and with
     * a denial by this or a later hook. Not if the call or this hook fails. Throws after the hook has timed out.
     */
    charge(meter: 'hook_unit', units: number): void
  }
}[Id]

/** Result of a request hook. Omitted members change nothing. */
export interface RequestResult {
  /** Replacement of the body, checked like a caller's own. Not for forms. */
  readonly body?: unknown
  /** Replacement texts by their ids; applied to `body` if there is one. */
  readonly texts?: ReadonlyMap<string, string>
  /** Rejects the request: no hold is created and no vendor is called. */
  readonly deny?: Denial
  /** Answer that replaces a call to a vendor. Answer hooks do not see it. */
  readonly answer?: CannedAnswer
}

/**
 * Answer without a call to a vendor: a text in the dialect of chat, Messages or Responses, as JSON or as events as requested by
 * the caller; or a complete HTTP answer on any endpoint, whose `body` is sent as JSON unless it is a string or bytes.
 */
export type CannedAnswer =
  | { readonly text: string }
  | {
      /** Body; strings and bytes are sent unchanged, other values as JSON. */
      readonly body: unknown
      /** HTTP status from 200 to 599. Default 200. */
      readonly status?: number
      /** Response headers by name. */
      readonly headers?: Readonly<Record<string, string>>
    }

/** Request to a vendor, before each candidate is called. */
export interface HookWire {
  /** Request id that the caller reads as `x-request-id`. */
  readonly requestId: string
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Public id of the model. */
  readonly model: string
  /** Id of the vendor that is about to be called. */
  readonly vendor: string
  /** Authenticated caller. */
  readonly principal: Principal
  /** Headers of the request that is about to be sent, without credentials. */
  readonly headers: Readonly<Record<string, string>>
  /** Path and query at the vendor. */
  readonly path: string
}

/** Additions to a request to a vendor. */
export interface WireResult {
  /** Headers by name. Credentials, `host` and headers that frame the body cannot be set. */
  readonly headers?: Readonly<Record<string, string>>
  /** Members of the JSON body, except `model` and `stream`. They are neither checked nor priced. */
  readonly members?: Readonly<Record<string, unknown>>
}

/** Answer before its caller receives a byte of it. */
export interface HookAnswer extends HookFacts {
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Id of the vendor that answered. */
  readonly vendor: string
  /** Answer in the caller's dialect; undefined if it was streamed. Read-only. */
  readonly body: Readonly<Record<string, unknown>> | undefined
  /** Whether the caller requested a stream. */
  readonly isStream: boolean
  /** Usage that the vendor reported, or `undefined` if it reported none. */
  readonly usage: Usage | undefined
  /** JSON schema that the request specifies for its answer, or `undefined` without one. Read-only. */
  readonly jsonSchema: unknown
  /** Returns all texts that the caller would read, as the previous hook has returned them. */
  texts(): readonly TextPart[]
}

/** Result of an answer hook. */
export interface AnswerResult {
  /** Replacement texts by their ids. */
  readonly texts?: ReadonlyMap<string, string>
  /** Withholds the answer, which is charged unless `chargeDenied` is false. */
  readonly deny?: Denial
  /** Headers for the caller, whose names begin with `x-`. Not sent if a stream began before the hook was called. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Facts of an answer before any of it is read. */
export interface AnswerFacts {
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Public id of the model. */
  readonly model: string
  /** Whether the caller requested a stream. */
  readonly isStream: boolean
  /** JSON schema that the request specifies for its answer; see {@link HookAnswer.jsonSchema}. */
  readonly jsonSchema: unknown
}

/** Part of one text of a streamed answer: of one choice, block or item, and of one kind. */
export interface TextWindow extends HookFacts {
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Id of the vendor that answers. */
  readonly vendor: string
  /** Id of the text, as in a whole answer. */
  readonly id: string
  /** Kind of the text. */
  readonly kind: TextKind
  /** Number of the choice, block or item, from 0. */
  readonly index: number
  /** Up to 64 characters of the vendor's text before `held`. They cannot be changed any more. */
  readonly before: string
  /** Characters held back earlier. */
  readonly held: string
  /** New characters. */
  readonly fresh: string
  /**
   * Whether the text ends here, so that nothing can be held back. Each text that ends has one such window, possibly without fresh
   * characters.
   */
  readonly isLast: boolean
}

/**
 * Result for `held + fresh`. `undefined` sends it, except for its last `holdBack.chars` characters. `replace` is sent instead of
 * all of it except `hold`, its last characters, which appear again as `held`.
 */
export type TextVerdict = undefined | { readonly replace: string; readonly hold?: string } | { readonly deny: Denial }

/** Reads streamed answers while they arrive. */
export interface TextHook {
  /** Number of characters that are held back, or `all` to send nothing before a text has ended. */
  readonly holdBack: 'all' | { readonly chars: number }
  /** Kinds of texts that are neither shown nor sent before they have ended, whatever `holdBack` is. */
  readonly holdAll?: readonly TextKind[]
  /** Called with each part of a text. May return a promise; reading from the vendor pauses meanwhile. */
  check(window: TextWindow): MaybePromise<TextVerdict>
}

/** Error that is about to be sent to the caller. */
export interface HookFailure extends Omit<HookFacts, 'signal'> {
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Code in the table of errors. */
  readonly code: ErrorCode
  /** HTTP status that the caller would get. */
  readonly status: number
  /** Message that the caller would read. */
  readonly message: string
  /** Aborts when the hook times out. */
  readonly signal: AbortSignal
}

/** Replacement of the message or status of an error. */
export interface FailureResult {
  /** Message that replaces the error's own. */
  readonly message?: string
  /** HTTP status from 400 to 599. */
  readonly status?: number
}

/** Code of the host in the path of calls. Every point is optional; see `docs/hooks.md` for their order. */
export interface Hook<Id extends EndpointId = EndpointId> {
  /** Name in events and logs. */
  readonly name: string
  /** Ids of the endpoints that it covers. Default: all whose texts can be read. */
  readonly endpoints?: readonly Id[]
  /** Version that is part of a response cache's key: another version creates separate entries. */
  readonly version?: string
  /** Time limit of one asynchronous point, in milliseconds. Default 2,000. */
  readonly timeoutMs?: number
  /** Effect of an exception, a rejection, a timeout or an unusable result. Default `deny`: the caller gets 503 `hook_failed`. */
  readonly onFailure?: 'deny' | 'allow'
  /** Whether answers that this hook denies are charged. The vendor charges for them. Default true. */
  readonly chargeDenied?: boolean
  /** Called after the limits, before a hold is created or anything is sent. */
  request?(call: HookCall<Id>): MaybePromise<RequestResult | undefined>
  /** Called synchronously before each candidate is called. */
  wire?(request: HookWire): WireResult | undefined
  /** Whether `answer` and `text` receive this answer. Synchronous; an exception counts as yes. Default: every answer. */
  appliesTo?(answer: AnswerFacts): boolean
  /** Checks whole answers. Also checks streams, held back to their end, unless there is `text`. */
  answer?(answer: HookAnswer): MaybePromise<AnswerResult | undefined>
  /** Checks streamed answers. */
  readonly text?: TextHook
  /** Changes errors of authenticated callers. */
  failed?(failure: HookFailure): MaybePromise<FailureResult | undefined>
  /** Called by `createGateway` with the gateway's logger and clock. `createGateway` rethrows its exceptions. */
  start?(gateway: { readonly logger: Logger; readonly clock: Clock }): void
  /** Called by `gateway.close` when all calls have ended. The gateway waits for it for the rest of `drainMs`, and logs its exceptions. */
  close?(): MaybePromise<void>
}

/** A hook for any endpoints. */
// biome-ignore lint/suspicious/noExplicitAny: a hook for some endpoints receives only calls of these.
export type AnyHook = Hook<any>

/**
 * Types a hook by the endpoints that it names.
 * @example
 * defineHook({ name: 'short', endpoints: ['chat'], request: ({ body }) => (body.messages.length > 99 ? { deny: {} } : undefined) })
 */
export function defineHook<const Id extends EndpointId>(hook: Hook<Id>): Hook<Id> {
  return hook
}

/** Denial with its defaults. */
export interface CheckedDenial {
  readonly error: GatewayError
  readonly isRefusal: boolean
  /** Error about the unusable part of the denial, or `undefined` if all of it is usable. The denial applies anyway. */
  readonly fault: TypeError | undefined
}

const MESSAGES = {
  request_denied: 'The request was denied by a rule of this service.',
  answer_denied: 'The answer was withheld by a rule of this service.',
} as const

/** Reads a hook's denial. Invalid members fall back to the default, so that they cannot void the denial. */
export function checkedDenial(denial: unknown, code: keyof typeof MESSAGES): CheckedDenial {
  const faults: string[] = isJsonObject(denial) ? [] : ['deny must be an object']
  const { message, status, code: publicCode, as = 'refusal' } = (isJsonObject(denial) ? denial : {}) as Denial
  const highest = code === 'request_denied' ? 499 : 599
  const isStatus = status === undefined || (Number.isInteger(status) && status >= 400 && status <= highest)
  if (!isStatus) faults.push(`deny.status must be from 400 to ${highest}`)
  if (message !== undefined && typeof message !== 'string') faults.push('deny.message must be a string')
  if (publicCode !== undefined && typeof publicCode !== 'string') faults.push('deny.code must be a string')
  if (as !== 'refusal' && as !== 'error') faults.push('deny.as must be refusal or error')
  const error = new GatewayError(code, {
    message: typeof message === 'string' ? message : MESSAGES[code],
    status: isStatus ? status : undefined,
    publicCode: typeof publicCode === 'string' ? publicCode : undefined,
  })
  return {
    error,
    isRefusal: as !== 'error',
    fault: faults.length === 0 ? undefined : new TypeError(faults.join('; ')),
  }
}
