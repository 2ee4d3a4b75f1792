import { hintAt } from '../../core/known-members.ts'

/**
 * A simulated vendor fault. Two ways to request it:
 *
 * - `sandbox.fault({ kind: 'status', status: 503, times: 2 })` for the next matching calls;
 * - a mark in the prompt or in the text to embed, for any client over HTTP: `[[fault:status=503]]`. Each kind below shows its
 *   mark; more settings follow after commas. A mark counts only in the user's last text, and is not echoed. `times=N`
 *   limits a mark to N calls: `[[fault:status=503,times=1]]`.
 *
 * Marks in one text can be combined.
 */
export type Fault =
  /** Error with this status and the vendor's own text. `[[fault:status=503]]`, `[[fault:status=429,retry-after=7]]` */
  | { readonly kind: 'status'; readonly status: number; readonly retryAfterSeconds?: number }
  /** The operator's account has no quota or money left, in this vendor's form. `[[fault:quota]]` */
  | { readonly kind: 'quota' }
  /** The key is unknown, in this vendor's form. `[[fault:bad-key]]` */
  | { readonly kind: 'bad-key' }
  /** A 401 whose text repeats the whole key, for tests of redaction. `[[fault:leak-key]]` */
  | { readonly kind: 'leak-key' }
  /** HTML page as sent by proxies. `[[fault:html=502]]` */
  | { readonly kind: 'html'; readonly status: number }
  /** A 307 to another place. `[[fault:redirect]]`, `[[fault:redirect=http://127.0.0.1:9/]]` */
  | { readonly kind: 'redirect'; readonly location?: string }
  /** The content filter blocks the answer, in this vendor's form. `[[fault:blocked]]` */
  | { readonly kind: 'blocked' }
  /** Replaces every number of the usage report; quoted values are strings. `[[fault:usage=-1]]`, `[[fault:usage='12']]` */
  | { readonly kind: 'usage'; readonly value: number | string }
  /** Omits the usage report. `[[fault:no-usage]]` */
  | { readonly kind: 'no-usage' }
  /** Delays the answer, in milliseconds. `[[fault:delay=200]]` */
  | { readonly kind: 'delay'; readonly delayMs: number }
  /** The vendor never answers. `[[fault:hang]]` */
  | { readonly kind: 'hang' }
  /** Headers and part of the body (by default one event, or half of a JSON body) arrive, then nothing. `[[fault:hang-body=3]]` */
  | { readonly kind: 'hang-body'; readonly events?: number }
  /** No connection: in process, rejected before a byte was sent; over sockets, it is reset. `[[fault:refuse]]` */
  | { readonly kind: 'refuse' }
  /** The connection is reset before the headers. `[[fault:reset]]` */
  | { readonly kind: 'reset' }
  /** The connection breaks after N events (default 1), or in the middle of a whole body. `[[fault:reset-mid-stream=3]]` */
  | { readonly kind: 'reset-mid-stream'; readonly events?: number }
  /** The body ends cleanly after N events (default 1), without the end of the answer. `[[fault:end-early=2]]` */
  | { readonly kind: 'end-early'; readonly events?: number }
  /** A stream without its end mark: `[DONE]`, `message_stop`, the chunk with the finish reason. `[[fault:no-done]]` */
  | { readonly kind: 'no-done' }
  /** Error event of the vendor after N events (default 1); in a whole answer, a 200 with an error. `[[fault:error-event=2]]` */
  | { readonly kind: 'error-event'; readonly events?: number }
  /** 200, the usual content type, and random bytes. `[[fault:garbage]]` */
  | { readonly kind: 'garbage' }
  /** 200 with an empty body. `[[fault:empty]]` */
  | { readonly kind: 'empty' }
  /** The JSON of the body, or of the second event, breaks off, and the body ends cleanly. `[[fault:half-json]]` */
  | { readonly kind: 'half-json' }
  /** The body never ends: content events, or white space of a JSON body (64 KiB at a time). `[[fault:endless]]` */
  | { readonly kind: 'endless' }
  /** Delay before each event of a stream, in milliseconds. `[[fault:pace=20]]` */
  | { readonly kind: 'pace'; readonly delayMs: number }
  /** Writes the body in pieces of this number of bytes (default 16), with a delay before each. `[[fault:slow=50,bytes=8]]` */
  | { readonly kind: 'slow'; readonly delayMs: number; readonly bytes?: number }
  /** Writes the body in pieces of this number of bytes, splitting events and characters. `[[fault:cut=7]]` */
  | { readonly kind: 'cut'; readonly bytes: number }
  /** A malformed mark: the call gets the vendor's 400 that quotes it. */
  | { readonly kind: 'unreadable'; readonly mark: string }

/** A kind of fault. */
type FaultKind = Fault['kind']

/** Reads the members of a fault from the main setting of a mark and its other settings. Returns `undefined` if one is malformed. */
type FaultReader = (value: string, settings: ReadonlyMap<string, string>) => object | undefined

const readNothing: FaultReader = () => ({})
const readEvents: FaultReader = (value) => (value === '' ? {} : members({ events: count(value) }))
const readDelay: FaultReader = (value) => members({ delayMs: milliseconds(value) })

const FAULT_READERS: Readonly<Record<FaultKind, FaultReader>> = {
  status: (value, settings) =>
    members({ status: httpStatus(value) }, { retryAfterSeconds: count(settings.get('retry-after')) }),
  quota: readNothing,
  'bad-key': readNothing,
  'leak-key': readNothing,
  html: (value) => members({ status: httpStatus(value) }),
  redirect: (value) => (value === '' ? {} : { location: value }),
  blocked: readNothing,
  usage: (value) => members({ value: usageValue(value) }),
  'no-usage': readNothing,
  delay: readDelay,
  hang: readNothing,
  'hang-body': readEvents,
  refuse: readNothing,
  reset: readNothing,
  'reset-mid-stream': readEvents,
  'end-early': readEvents,
  'no-done': readNothing,
  'error-event': readEvents,
  garbage: readNothing,
  empty: readNothing,
  'half-json': readNothing,
  endless: readNothing,
  pace: readDelay,
  slow: (value, settings) => members({ delayMs: milliseconds(value) }, { bytes: positive(settings.get('bytes')) }),
  cut: (value) => members({ bytes: positive(value) }),
  unreadable: () => undefined,
}

/** Joins members. Returns `undefined` if a required one is missing, and leaves out optional ones that are. */
function members(required: Readonly<Record<string, unknown>>, optional: object = {}): object | undefined {
  if (Object.values(required).includes(undefined)) return undefined
  return { ...required, ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)) }
}

/**
 * Rejects a fault that would have no effect, because a test that waits for it would pass for another reason.
 * @throws TypeError naming the kind and the nearest known one.
 */
function checkFault(fault: QueuedFault): void {
  const kind: unknown = Object(fault).kind
  if (typeof kind === 'string' && Object.hasOwn(FAULT_READERS, kind)) return
  throw new TypeError(
    `fault: there is no kind ${JSON.stringify(kind)}; ${hintAt(String(kind), Object.keys(FAULT_READERS))}`,
  )
}

/** A fault and the calls that it applies to. */
export type QueuedFault = Fault & {
  /** Vendor of the calls. Default: any vendor. */
  readonly vendor?: string
  /** Operation of the calls. Default: any operation. */
  readonly operation?: string
  /** Number of calls that it applies to. Default 1. */
  readonly times?: number
}

/** Returns the fault of a kind, if any. */
export function faultOf<Kind extends FaultKind>(
  faults: readonly Fault[],
  kind: Kind,
): Extract<Fault, { kind: Kind }> | undefined {
  return faults.find((fault): fault is Extract<Fault, { kind: Kind }> => fault.kind === kind)
}

const MARK = /\[\[fault:([^\]]*)\]\]/g

/** Reads the marks of a text, and to how many calls each applies. A malformed mark becomes the fault `unreadable`. */
function faultMarks(text: string) {
  return [...text.matchAll(MARK)].map(([mark, inner]) => {
    const settings = new Map<string, string>()
    for (const part of (inner ?? '').split(',')) {
      const equals = part.indexOf('=')
      if (equals === -1) settings.set(part.trim(), '')
      else settings.set(part.slice(0, equals).trim(), part.slice(equals + 1).trim())
    }
    const fault: Fault = readFault(settings) ?? { kind: 'unreadable', mark }
    return { text: mark, fault, times: count(settings.get('times')) }
  })
}

/** Returns the text that the model reads. */
export function withoutFaultMarks(text: string): string {
  return text.replace(MARK, '').trim()
}

/** The first setting of a mark names the kind, and its value is the kind's main setting. */
function readFault(settings: ReadonlyMap<string, string>): Fault | undefined {
  const [kind, value] = [...settings][0] ?? ['', '']
  const read = Object.hasOwn(FAULT_READERS, kind) ? FAULT_READERS[kind as FaultKind](value, settings) : undefined
  return read && ({ kind, ...read } as Fault)
}

function usageValue(value: string): number | string | undefined {
  const quoted = /^'(.*)'$/.exec(value)
  if (quoted !== null) return quoted[1]
  return value === '' || Number.isNaN(Number(value)) ? undefined : Number(value)
}

function count(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : undefined
}

function positive(value: string | undefined): number | undefined {
  const number = count(value)
  return number === 0 ? undefined : number
}

function milliseconds(value: string): number | undefined {
  return count(value.replace(/ms$/, ''))
}

function httpStatus(value: string): number | undefined {
  const status = count(value)
  return status !== undefined && status >= 200 && status <= 599 ? status : undefined
}

// Marks with `times` are counted by their text; the oldest are dropped first.
const MAX_COUNTED_MARKS = 1000

/** The faults that are still queued. */
export type FaultQueue = ReturnType<typeof faultQueue>

/** Creates an empty queue. */
export function faultQueue() {
  let waiting: { readonly fault: QueuedFault; timesLeft: number }[] = []
  const strikes = new Map<string, number>()

  const strikesAgain = (mark: string, times: number): boolean => {
    const struck = strikes.get(mark) ?? 0
    strikes.delete(mark)
    strikes.set(mark, struck + 1)
    const [oldest] = strikes.keys()
    if (strikes.size > MAX_COUNTED_MARKS && oldest !== undefined) strikes.delete(oldest)
    return struck < times
  }

  return {
    add(fault: QueuedFault): void {
      checkFault(fault)
      waiting.push({ fault, timesLeft: fault.times ?? 1 })
    },
    /** Returns the faults of this call: the oldest queued one that matches, and those marked in its text. */
    take(vendor: string, operation: string, promptText: string): Fault[] {
      const faults: Fault[] = []
      const queued = waiting.find(
        ({ fault }) => (fault.vendor ?? vendor) === vendor && (fault.operation ?? operation) === operation,
      )
      if (queued !== undefined) {
        faults.push(queued.fault)
        queued.timesLeft--
        waiting = waiting.filter((entry) => entry.timesLeft > 0)
      }
      for (const mark of faultMarks(promptText)) {
        if (mark.times === undefined || strikesAgain(mark.text, mark.times)) faults.push(mark.fault)
      }
      return faults
    },
    clear(): void {
      waiting = []
      strikes.clear()
    },
  }
}
