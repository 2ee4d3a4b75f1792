import type { Fault } from './fault.ts'

/** A fault mark as it stands in a text. */
export interface FaultMark {
  /** The whole mark; marks with equal texts share one count of `times`. */
  readonly text: string
  readonly fault: Fault
  /** How many calls it strikes; undefined for all. */
  readonly times: number | undefined
}

const MARK = /\[\[fault:([^\]]*)\]\]/g

/** Reads the marks of a text. A mark that makes no sense becomes the fault `unreadable`. */
export function faultMarks(text: string): FaultMark[] {
  return [...text.matchAll(MARK)].map(([mark, inner]) => {
    const settings = new Map<string, string>()
    for (const part of (inner ?? '').split(',')) {
      const equals = part.indexOf('=')
      if (equals === -1) settings.set(part.trim(), '')
      else settings.set(part.slice(0, equals).trim(), part.slice(equals + 1).trim())
    }
    const fault = readFault(settings) ?? { kind: 'unreadable', mark }
    return { text: mark, fault, times: count(settings.get('times')) }
  })
}

/** The text as the model reads it. */
export function withoutFaultMarks(text: string): string {
  return text.replace(MARK, '').trim()
}

/** The first setting of a mark names the kind, and its value is the kind's main setting. */
function readFault(settings: ReadonlyMap<string, string>): Fault | undefined {
  const [kind, value] = [...settings][0] ?? ['', '']
  switch (kind) {
    case 'quota':
    case 'bad-key':
    case 'leak-key':
    case 'blocked':
    case 'no-usage':
    case 'hang':
    case 'refuse':
    case 'reset':
    case 'no-done':
    case 'garbage':
    case 'empty':
    case 'half-json':
    case 'endless':
      return { kind }
    case 'hang-body':
    case 'reset-mid-stream':
    case 'end-early':
    case 'error-event': {
      const events = count(value)
      return value !== '' && events === undefined ? undefined : { kind, ...(events === undefined ? {} : { events }) }
    }
    case 'status': {
      const status = httpStatus(value)
      const retryAfterSeconds = count(settings.get('retry-after'))
      if (status === undefined) return undefined
      return { kind, status, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) }
    }
    case 'html': {
      const status = httpStatus(value)
      return status === undefined ? undefined : { kind, status }
    }
    case 'redirect':
      return value === '' ? { kind } : { kind, location: value }
    case 'usage':
      return usageFault(value)
    case 'delay':
    case 'pace': {
      const delayMs = milliseconds(value)
      return delayMs === undefined ? undefined : { kind, delayMs }
    }
    case 'slow': {
      const delayMs = milliseconds(value)
      const bytes = positive(settings.get('bytes'))
      return delayMs === undefined ? undefined : { kind, delayMs, ...(bytes === undefined ? {} : { bytes }) }
    }
    case 'cut': {
      const bytes = positive(value)
      return bytes === undefined ? undefined : { kind, bytes }
    }
    default:
      return undefined
  }
}

function usageFault(value: string): Fault | undefined {
  const quoted = /^'(.*)'$/.exec(value)
  if (quoted !== null) return { kind: 'usage', value: quoted[1] ?? '' }
  return value === '' || Number.isNaN(Number(value)) ? undefined : { kind: 'usage', value: Number(value) }
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
