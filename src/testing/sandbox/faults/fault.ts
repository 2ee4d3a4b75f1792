/**
 * Something that goes wrong at a vendor, on request. Two ways to ask for it:
 *
 * - `sandbox.fault({ kind: 'status', status: 503, times: 2 })` for the next calls that fit;
 * - a mark in the prompt or in the text to embed, so that any client can ask over HTTP: `[[fault:status=503]]`. The mark is
 *   written beside each kind below; further settings follow after commas. A mark counts in the user's last text only, and
 *   is not echoed. `times=N` lets a mark strike N times and then no more: `[[fault:status=503,times=1]]`.
 *
 * Several marks in one text work together.
 */
export type Fault =
  /** An error of this status in the vendor's own words. `[[fault:status=503]]`, `[[fault:status=429,retry-after=7]]` */
  | { readonly kind: 'status'; readonly status: number; readonly retryAfterSeconds?: number }
  /** The operator's account is out of quota or money, as this vendor says it. `[[fault:quota]]` */
  | { readonly kind: 'quota' }
  /** The key is not known, as this vendor says it. `[[fault:bad-key]]` */
  | { readonly kind: 'bad-key' }
  /** A 401 whose text repeats the whole key, for tests of redaction. `[[fault:leak-key]]` */
  | { readonly kind: 'leak-key' }
  /** A page of HTML, as proxies answer. `[[fault:html=502]]` */
  | { readonly kind: 'html'; readonly status: number }
  /** A 307 to another place. `[[fault:redirect]]`, `[[fault:redirect=http://127.0.0.1:9/]]` */
  | { readonly kind: 'redirect'; readonly location?: string }
  /** The content filter strikes, as this vendor says it. `[[fault:blocked]]` */
  | { readonly kind: 'blocked' }
  /** Every number of the usage report is replaced; a value in single quotes is text. `[[fault:usage=-1]]`, `[[fault:usage='12']]` */
  | { readonly kind: 'usage'; readonly value: number | string }
  /** The usage report is left out. `[[fault:no-usage]]` */
  | { readonly kind: 'no-usage' }
  /** The answer begins later. `[[fault:delay=200]]` */
  | { readonly kind: 'delay'; readonly delayMs: number }
  /** No answer ever comes. `[[fault:hang]]` */
  | { readonly kind: 'hang' }
  /** Headers and some of the body come (by default one event, or half of a whole body), then nothing more. `[[fault:hang-body=3]]` */
  | { readonly kind: 'hang-body'; readonly events?: number }
  /** No connection: in process, refused before a byte has left; over sockets it is reset. `[[fault:refuse]]` */
  | { readonly kind: 'refuse' }
  /** The connection is reset before the headers. `[[fault:reset]]` */
  | { readonly kind: 'reset' }
  /** The connection breaks after so many events (by default 1), or in the middle of a whole body. `[[fault:reset-mid-stream=3]]` */
  | { readonly kind: 'reset-mid-stream'; readonly events?: number }
  /** The body ends cleanly after so many events (by default 1), without the end of the answer. `[[fault:end-early=2]]` */
  | { readonly kind: 'end-early'; readonly events?: number }
  /** A stream without its end mark: `[DONE]`, `message_stop`, the chunk with the finish reason. `[[fault:no-done]]` */
  | { readonly kind: 'no-done' }
  /** An error event of the vendor after so many events (by default 1); a whole answer becomes 200 with an error in it. `[[fault:error-event=2]]` */
  | { readonly kind: 'error-event'; readonly events?: number }
  /** 200, the usual content type, and bytes that mean nothing. `[[fault:garbage]]` */
  | { readonly kind: 'garbage' }
  /** 200 with an empty body. `[[fault:empty]]` */
  | { readonly kind: 'empty' }
  /** The JSON of the body, or of the second event, breaks off, and the body ends cleanly. `[[fault:half-json]]` */
  | { readonly kind: 'half-json' }
  /** The body goes on for ever: content events, or white space of a whole body (64 KiB at a time). `[[fault:endless]]` */
  | { readonly kind: 'endless' }
  /** Milliseconds before each event of a stream. `[[fault:pace=20]]` */
  | { readonly kind: 'pace'; readonly delayMs: number }
  /** The body is written so many bytes at a time (by default 16) with a wait before each. `[[fault:slow=50,bytes=8]]` */
  | { readonly kind: 'slow'; readonly delayMs: number; readonly bytes?: number }
  /** The body is written so many bytes at a time, through the middle of events and characters. `[[fault:cut=7]]` */
  | { readonly kind: 'cut'; readonly bytes: number }
  /** A mark that cannot be read: the call is answered with the vendor's 400 that quotes it. */
  | { readonly kind: 'unreadable'; readonly mark: string }

/** A kind of fault. */
export type FaultKind = Fault['kind']

/** A fault and the calls it waits for. */
export type QueuedFault = Fault & {
  /** Only calls to this vendor. */
  readonly vendor?: string
  /** Only calls of this operation. */
  readonly operation?: string
  /** How many calls it strikes; default 1. */
  readonly times?: number
}

/** The fault of a kind, when it is among these. */
export function faultOf<Kind extends FaultKind>(
  faults: readonly Fault[],
  kind: Kind,
): Extract<Fault, { kind: Kind }> | undefined {
  return faults.find((fault): fault is Extract<Fault, { kind: Kind }> => fault.kind === kind)
}
