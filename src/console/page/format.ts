import { useEffect, useState } from 'preact/hooks'
import type { OperatorScope } from '../../admin/admin-route.ts'
import { queryOf, type Session } from './api.ts'

const NANOS = 1_000_000_000n

/** Parses decimal dollars as nano-dollars. */
export function nanoOf(dollars: string): bigint {
  const [, sign = '', whole = '0', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(dollars) ?? []
  const nano = BigInt(whole) * NANOS + BigInt(fraction.padEnd(9, '0').slice(0, 9))
  return sign === '-' ? -nano : nano
}

const CENT = NANOS / 100n
/** Precision of amounts from one cent on. */
const LAST_DIGIT = NANOS / 10_000n

/** Formats dollars for display: `$12.34`. Amounts from one cent on are rounded to four digits; smaller ones are exact. */
export function money(dollars: string | bigint): string {
  const nano = typeof dollars === 'bigint' ? dollars : nanoOf(dollars)
  const size = nano < 0n ? -nano : nano
  const rounded = size < CENT ? size : ((size + LAST_DIGIT / 2n) / LAST_DIGIT) * LAST_DIGIT
  return exactMoney(nano < 0n ? -rounded : rounded)
}

/** Formats dollars with all digits, at least two: `$0.019999`. */
export function exactMoney(dollars: string | bigint): string {
  const nano = typeof dollars === 'bigint' ? dollars : nanoOf(dollars)
  const size = nano < 0n ? -nano : nano
  const fraction = String(size % NANOS).padStart(9, '0')
  const shown = fraction.replace(/0+$/, '').padEnd(2, '0')
  return `${nano < 0n ? '-' : ''}$${(size / NANOS).toLocaleString('en-US')}.${shown}`
}

/** Formats an integer with separators. */
export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

/** Formats a duration for display: `850 ms`, `12.3 s`, `4 min`. */
export function duration(milliseconds: number | null): string {
  if (milliseconds === null) return '–'
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`
  if (milliseconds < 120_000) return `${(milliseconds / 1_000).toFixed(1)} s`
  return `${Math.round(milliseconds / 60_000)} min`
}

/** Formats a time in the reader's time zone. */
export function time(atMs: number | null): string {
  if (atMs === null) return '–'
  return new Date(atMs).toLocaleString(undefined, { dateStyle: 'short', timeStyle: 'medium' })
}

export function percent(part: number, whole: number): string {
  return whole === 0 ? '0 %' : `${((part / whole) * 100).toFixed(part === 0 ? 0 : 1)} %`
}

/** Current view, from the fragment after the `#` of the URL, so that any mount serves every view. */
export interface Place {
  /** Path of the view, such as `['requests', 'req_1']`. */
  readonly steps: readonly string[]
  readonly query: URLSearchParams
}

function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const steps = path.split('/').filter((step) => step !== '')
  return { steps: steps.map(decoded), query: new URLSearchParams(query) }
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash))
  useEffect(() => {
    const listener = (): void => setPlace(placeOf(location.hash))
    addEventListener('hashchange', listener)
    return () => removeEventListener('hashchange', listener)
  }, [])
  return place
}

/** Returns the URL of a view. */
export function hrefOf(
  steps: readonly string[],
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  return `#/${steps.map(encodeURIComponent).join('/')}${queryOf(query)}`
}

/** Whether the operator may do this here. Forbidden actions are not shown; the API rejects them in any case. */
export function may(session: Session, scope: OperatorScope): boolean {
  return session.can.includes(scope) && (scope === 'read' || !session.read_only)
}
