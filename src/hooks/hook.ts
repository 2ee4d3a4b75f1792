import type { Clock } from '../core/clock.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { Logger } from '../core/logger.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { EndpointRequests } from '../endpoints/registry.ts'
import type { TextKind, TextPart } from '../endpoints/texts.ts'
import type { Principal } from '../stores/principal.ts'

/** Ids of the gateway's own endpoints. */
export type EndpointId = keyof EndpointRequests

/** Refuses a request or an answer. */
export interface Denial {
  /** What the caller reads. Default: a sentence that a rule of the operator refused it. */
  readonly message?: string
  /** The error code that the caller reads. Default `request_denied` or `answer_denied`. */
  readonly code?: string
  /** HTTP status from 400 to 499, of answers to 599. Default 400. */
  readonly status?: number
  /** Answers only: as a refusal of the dialect, such as `finish_reason: "content_filter"` (default), or as an error. */
  readonly as?: 'refusal' | 'error'
}

/** What every point of a hook is told of the call. No key and no other credential is in it. */
export interface HookFacts {
  /** The caller reads it as `x-request-id`. */
  readonly requestId: string
  /** Public id of the model. Empty where items are added to a conversation: none is known yet. */
  readonly model: string
  /** Who calls. */
  readonly principal: Principal
  /** Tags of the call for records of usage: the principal's and the caller's own. */
  readonly tags: readonly string[]
  /** A header of the caller's by lower-case name. Undefined for headers that carry credentials. */
  header(name: string): string | undefined
  /** Aborted when the hook's time is over, or when the caller has left before a vendor was asked. */
  readonly signal: AbortSignal
}

/** A request, and its body by endpoint. Nothing in the body can be changed: a hook returns what is to be sent. */
export type HookCall<Id extends EndpointId = EndpointId> = {
  readonly [Each in Id]: HookFacts & {
    /** Endpoint id; says which type `body` has. */
    readonly endpoint: Each
    /** The request as the hook before has left it. */
    readonly body: Readonly<EndpointRequests[Each]>
    /** Does the caller want a stream? */
    readonly isStream: boolean
    /** All texts that a model would read, as the caller wrote them. */
    texts(): readonly TextPart[]
    /**
     * Charges whole units of the hook's own work at the price `hook_unit` of the model: with the call, with a hit of the cache, and
     * with a denial by this or a later hook. Not where the call fails, nor where this hook fails. Throws once the hook's time is over.
     */
    charge(meter: 'hook_unit', units: number): void
  }
}[Id]

/** What becomes of a request. Absent members: it stays as it is. */
export interface RequestResult {
  /** Another body in its place, checked as a caller's own. Not for forms. */
  readonly body?: unknown
  /** Other texts by their ids; applied to `body` if there is one. */
  readonly texts?: ReadonlyMap<string, string>
  /** Refuses the request: nothing is held and no vendor is called. */
  readonly deny?: Denial
  /** What the caller gets in place of a vendor's answer. It is not shown to answer hooks. */
  readonly answer?: CannedAnswer
}

/**
 * An answer that no vendor is asked for: a text in the dialect of chat, Messages or Responses, as JSON or as events as the caller
 * asked; or a whole HTTP answer on any endpoint, where a `body` that is neither text nor bytes is sent as JSON.
 */
export type CannedAnswer =
  | { readonly text: string }
  | {
      /** Sent as it is where it is text or bytes, as JSON otherwise. */
      readonly body: unknown
      /** 200 to 599. Default 200. */
      readonly status?: number
      /** By name. */
      readonly headers?: Readonly<Record<string, string>>
    }

/** A request to a vendor, before each candidate is called. */
export interface HookWire {
  /** The caller reads it as `x-request-id`. */
  readonly requestId: string
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Public id of the model. */
  readonly model: string
  /** Id of the vendor that is about to be called. */
  readonly vendor: string
  /** Who calls. */
  readonly principal: Principal
  /** Of the request that is about to be sent, without credentials. */
  readonly headers: Readonly<Record<string, string>>
  /** Path and query at the vendor. */
  readonly path: string
}

/** What is added to a request to a vendor. */
export interface WireResult {
  /** By name. Credentials, `host` and headers that frame the body cannot be set. */
  readonly headers?: Readonly<Record<string, string>>
  /** Members of the JSON body; not `model` and not `stream`. They are neither checked nor priced. */
  readonly members?: Readonly<Record<string, unknown>>
}

/** An answer before its caller sees a byte of it. */
export interface HookAnswer extends HookFacts {
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Id of the vendor that answered. */
  readonly vendor: string
  /** The answer in the caller's dialect; undefined where it was streamed. Cannot be changed. */
  readonly body: Readonly<Record<string, unknown>> | undefined
  /** Did the caller ask for a stream? */
  readonly isStream: boolean
  /** What the vendor reported; undefined: nothing. */
  readonly usage: Usage | undefined
  /** The JSON schema that the request wants its answer to match; undefined: none. Cannot be changed. */
  readonly jsonSchema: unknown
  /** All texts that the caller would read, as the hook before has left them. */
  texts(): readonly TextPart[]
}

/** What becomes of an answer. */
export interface AnswerResult {
  /** Other texts by their ids. */
  readonly texts?: ReadonlyMap<string, string>
  /** Withholds the answer; it is charged unless `chargeDenied` is false. */
  readonly deny?: Denial
  /** Headers for the caller, whose names begin with `x-`. Not sent where a stream has begun before the hook was asked. */
  readonly headers?: Readonly<Record<string, string>>
}

/** What is known of an answer before any of it is read. */
export interface AnswerFacts {
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Public id of the model. */
  readonly model: string
  /** Did the caller ask for a stream? */
  readonly isStream: boolean
  /** As of {@link HookAnswer}. */
  readonly jsonSchema: unknown
}

/** A part of one text of a streamed answer: of one choice, block or item, and of one kind. */
export interface TextWindow extends HookFacts {
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Id of the vendor that answers. */
  readonly vendor: string
  /** Id of the text, the same as in a whole answer. */
  readonly id: string
  /** What kind of text it is. */
  readonly kind: TextKind
  /** Number of the choice, block or item, from 0. */
  readonly index: number
  /** At most 64 characters of the vendor's that stand before `held`; they cannot be changed any more. */
  readonly before: string
  /** What was held back earlier. */
  readonly held: string
  /** What is new. */
  readonly fresh: string
  /** Does the text end here? Then nothing can be held back. Told once of each text of a stream that ends, perhaps with nothing fresh. */
  readonly isLast: boolean
}

/**
 * What becomes of `held + fresh`. Undefined: it is sent, but for its last `holdBack.chars` characters. `replace` is sent in place of
 * all of it but `hold`, the last characters of it, which come again as `held`.
 */
export type TextVerdict = undefined | { readonly replace: string; readonly hold?: string } | { readonly deny: Denial }

/** Reads streamed answers while they arrive. */
export interface TextHook {
  /** `all`: nothing is sent before a text has ended. Else how many characters stay behind. */
  readonly holdBack: 'all' | { readonly chars: number }
  /** Kinds of texts of which nothing is shown or sent before they have ended, whatever `holdBack` says. */
  readonly holdAll?: readonly TextKind[]
  /** Called with each part of a text. May return a promise; the vendor is not read on meanwhile. */
  check(window: TextWindow): MaybePromise<TextVerdict>
}

/** An error that is about to be sent to the caller. */
export interface HookFailure extends Omit<HookFacts, 'signal'> {
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** As in the table of errors. */
  readonly code: ErrorCode
  /** HTTP status that the caller would get. */
  readonly status: number
  /** Text that the caller would read. */
  readonly message: string
  /** Aborted when the hook's time is over. */
  readonly signal: AbortSignal
}

/** Another text or status for an error. */
export interface FailureResult {
  /** Text in place of the error's own. */
  readonly message?: string
  /** 400 to 599. */
  readonly status?: number
}

/** The host's own code in the path of calls. Every point is optional; see `docs/hooks.md` for their order. */
export interface Hook<Id extends EndpointId = EndpointId> {
  /** Said in events and logs. */
  readonly name: string
  /** Ids of the endpoints that it covers. Default: all whose texts can be read. */
  readonly endpoints?: readonly Id[]
  /** Part of the key of a response cache: another version makes other entries. */
  readonly version?: string
  /** Longest time of one asynchronous point, in milliseconds. Default 2,000. */
  readonly timeoutMs?: number
  /** What a throw, a rejection, a timeout or an unusable result means. Default `deny`: the caller gets 503 `hook_failed`. */
  readonly onFailure?: 'deny' | 'allow'
  /** Are answers charged for that this hook denies? The vendor charges for them. Default true. */
  readonly chargeDenied?: boolean
  /** Before anything is held or sent, after the limits. */
  request?(call: HookCall<Id>): MaybePromise<RequestResult | undefined>
  /** Before each candidate is called. Synchronous. */
  wire?(request: HookWire): WireResult | undefined
  /** Is this answer shown to `answer` and `text`? Synchronous; a throw counts as yes. Default: every answer is. */
  appliesTo?(answer: AnswerFacts): boolean
  /** Whole answers. Streams too, held back to their end, unless there is `text`. */
  answer?(answer: HookAnswer): MaybePromise<AnswerResult | undefined>
  /** Streamed answers. */
  readonly text?: TextHook
  /** Errors, of callers who are known. */
  failed?(failure: HookFailure): MaybePromise<FailureResult | undefined>
  /** Called by `createGateway`, with the gateway's logger and clock. What it throws, `createGateway` throws. */
  start?(gateway: { readonly logger: Logger; readonly clock: Clock }): void
  /** Called by `gateway.close` once all calls are over. It is waited for, for the rest of `drainMs`; what it throws is logged. */
  close?(): MaybePromise<void>
}

/** A hook of any coverage. */
// biome-ignore lint/suspicious/noExplicitAny: a hook for some endpoints is handed calls of these only.
export type AnyHook = Hook<any>

/**
 * Gives a hook the types of the endpoints that it names.
 * @example
 * defineHook({ name: 'short', endpoints: ['chat'], request: ({ body }) => (body.messages.length > 99 ? { deny: {} } : undefined) })
 */
export function defineHook<const Id extends EndpointId>(hook: Hook<Id>): Hook<Id> {
  return hook
}
