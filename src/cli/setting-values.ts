import { readFileSync } from 'node:fs'
import { GatewayError } from '../core/errors.ts'
import { parseDollars } from '../core/money.ts'
import type { SpendingCap } from '../stores/principal.ts'
import { MIN_TASK_RETENTION_DAYS } from '../tasks/task-worker.ts'
import { millisecondsOf } from '../usage/usage-query.ts'

/** Thrown for a setting that cannot be used. The message names it and its valid values, and is printed without a stack. */
export class SettingError extends Error {
  override readonly name = 'SettingError'
}

/** Adds the variable's name to errors of shared code, which does not know about variables. */
export function namingSetting<Value>(name: string, run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError || GatewayError.isInstance(error))
      throw new SettingError(`${name}: ${error.message}`)
    throw error
  }
}

const MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Reads a duration above 0 such as `250ms`, `5s`, `15m`, `1h`, `30d` as milliseconds. */
export function parseDuration(name: string, text: string): number {
  const value = parseDelay(name, text)
  if (value === 0) throw new SettingError(`${name}: ${JSON.stringify(text)} must be longer than 0`)
  return value
}

/** Reads a duration like {@link parseDuration}, or 0 with a unit: `0s`. */
export function parseDelay(name: string, text: string): number {
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(text.trim())
  const unit = MILLISECONDS[match?.[2] ?? '']
  const value = Number(match?.[1]) * (unit ?? Number.NaN)
  if (Number.isNaN(value))
    throw new SettingError(`${name}: ${JSON.stringify(text)} is not a duration such as 250ms, 5s, 15m, 1h or 30d`)
  return value
}

/** Reads a duration in days, which may be fractional, of at least one day, or `forever` as `Infinity`. */
export function parseRetentionDays(name: string, text: string): number {
  if (text === 'forever') return Number.POSITIVE_INFINITY
  const days = parseDelay(name, text) / MILLISECONDS['d']!
  if (days < MIN_TASK_RETENTION_DAYS)
    throw new SettingError(
      `${name}: ${JSON.stringify(text)} is less than ${MIN_TASK_RETENTION_DAYS}d, the time for which an Idempotency-Key returns its task`,
    )
  return days
}

/** Reads `name=value,name=value`. Each known name may appear once. */
export function parsePairs<Name extends string>(
  setting: string,
  text: string,
  names: readonly Name[],
): Map<Name, string> {
  const pairs = new Map<Name, string>()
  for (const part of text.split(',')) {
    const [name, value, ...rest] = part.split('=').map((piece) => piece.trim())
    if (name === undefined || value === undefined || value === '' || rest.length > 0 || !names.includes(name as Name)) {
      throw new SettingError(
        `${setting}: ${JSON.stringify(part)} is not one of ${names.map((known) => `${known}=…`).join(', ')}`,
      )
    }
    if (pairs.has(name as Name)) throw new SettingError(`${setting}: ${name} is given twice`)
    pairs.set(name as Name, value)
  }
  return pairs
}

/** Reads a whole number of at least 1. */
export function parseCount(name: string, text: string): number {
  if (!/^\d{1,15}$/.test(text) || Number(text) < 1)
    throw new SettingError(`${name}: ${JSON.stringify(text)} is not a whole number above 0`)
  return Number(text)
}

/** Reads a dollar amount such as `25`, `0.50` or `$1.5`, and returns it without the currency sign. */
export function checkDollars(name: string, text: string): string {
  const amount = text.replace(/^\$/, '')
  try {
    parseDollars(amount)
  } catch {
    throw new SettingError(`${name}: ${JSON.stringify(text)} is not a dollar amount such as 25 or 0.50`)
  }
  return amount
}

/** Reads a dollar amount that may be negative, such as `-5` or `-$0.003`, and returns it without the currency sign. */
export function checkSignedDollars(name: string, text: string): string {
  return text.startsWith('-') ? `-${checkDollars(name, text.slice(1))}` : checkDollars(name, text)
}

/** Checks a UTC day such as `2026-12-31`, or a time such as `2026-12-31T12:00Z`, and returns it as it is. */
export function checkMoment(name: string, text: string): string {
  if (Number.isNaN(millisecondsOf(text)))
    throw new SettingError(
      `${name}: ${JSON.stringify(text)} is not a UTC time such as 2026-12-31 or 2026-12-31T12:00:00Z`,
    )
  return text
}

/** Reads a month such as `2026-11`. */
export function parseMonth(name: string, text: string): string {
  if (!/^\d{4}-(?:0[1-9]|1[0-2])$/.test(text))
    throw new SettingError(`${name}: ${JSON.stringify(text)} is not a month such as 2026-11`)
  return text
}

/** Reads a spending cap such as `50/month` or `2.50/day`. */
export function parseCap(name: string, text: string): SpendingCap {
  const [amount = '', period, ...rest] = text.split('/').map((part) => part.trim())
  if ((period !== 'day' && period !== 'month') || rest.length > 0)
    throw new SettingError(`${name}: ${JSON.stringify(text)} is not a cap such as 50/month or 2.50/day`)
  return { amount: parseDollars(checkDollars(name, amount)), period }
}

/** Reads names separated by commas, each once; at least one. */
export function parseNames(name: string, text: string): string[] {
  const names = text.split(',').map((part) => part.trim())
  if (names.includes('')) throw new SettingError(`${name}: ${JSON.stringify(text)} is not a list such as one,two`)
  return [...new Set(names)]
}

/** Reads an id: printable ASCII without spaces, at most 200 characters. */
export function parseId(name: string, text: string): string {
  if (!/^[\x21-\x7e]{1,200}$/.test(text))
    throw new SettingError(`${name}: must be 1 to 200 printable ASCII characters without spaces`)
  return text
}

/** Reads a display name: one line of at most 200 characters. */
export function parseLabel(name: string, text: string): string {
  if (text.length > 200 || /\p{Cc}/u.test(text))
    throw new SettingError(`${name}: must be one line of at most 200 characters`)
  return text
}

/** Reads `1` as true and `0` as false. */
export function parseSwitch(name: string, text: string): boolean {
  if (text !== '1' && text !== '0') throw new SettingError(`${name}: must be 1 or 0`)
  return text === '1'
}

/** Reads a share from 0 to 1, such as `0.01`. */
export function parseShare(name: string, text: string): number {
  const share = /^\d(?:\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN
  if (!(share <= 1)) throw new SettingError(`${name}: ${JSON.stringify(text)} is not a share from 0 to 1`)
  return share
}

/** Reads a TCP port; 0 lets the system choose. */
export function parsePort(name: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (!(port >= 0 && port <= 65_535)) throw new SettingError(`${name}: ${JSON.stringify(text)} is not a port`)
  return port
}

/**
 * Reads a JSON file that a setting names.
 * @throws SettingError naming setting and file.
 */
export function readJson(name: string, path: string): unknown {
  return parsedJson(readText(name, path), `${name}: the file ${path} does not hold valid JSON`)
}

/** @throws SettingError with the complaint and the position. */
export function parsedJson(text: string, complaint: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new SettingError(`${complaint}: ${jsonFaultOf(text)}`)
  }
}

/**
 * Reads a text file that a setting names.
 * @throws SettingError naming setting and file.
 */
export function readText(name: string, path: string): string {
  try {
    // Some Windows editors write a byte order mark first, which is not JSON.
    return readFileSync(path, 'utf8').replace(/^\ufeff/, '')
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? 'unknown reason'
    throw new SettingError(`${name}: the file ${path} cannot be read (${reason})`)
  }
}

const BLANKS = /[\t\n\r ]*/y
const STRING = /"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy
const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/**
 * Describes the error in a text that `JSON.parse` rejects: `line 3, column 1: expected a name in double quotes`. The parser's own
 * message repeats the text, which may contain secrets, and does not always contain a position.
 */
function jsonFaultOf(text: string): string {
  try {
    const end = pastBlanks(text, pastValue(text, 0))
    expect(text, end, end === text.length, 'nothing more')
  } catch (fault) {
    if (fault instanceof RangeError) return 'it is nested too deep'
    if (!(fault instanceof JsonFault)) throw fault
    return fault.message
  }
  return 'it cannot be parsed'
}

/** Error at the first invalid character of a JSON text. */
class JsonFault extends Error {}

function expect(text: string, at: number, isRight: boolean, expected: string): void {
  if (isRight) return
  const lines = text.slice(0, at).split('\n')
  throw new JsonFault(`line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}: expected ${expected}`)
}

function pastMatch(text: string, at: number, pattern: RegExp): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

function pastBlanks(text: string, at: number): number {
  return pastMatch(text, at, BLANKS)
}

function pastValue(text: string, from: number): number {
  const at = pastBlanks(text, from)
  if (text[at] === '{') return pastList(text, at, '}')
  if (text[at] === '[') return pastList(text, at, ']')
  const end = pastMatch(text, at, text[at] === '"' ? STRING : SCALAR)
  expect(text, at, end > at, text[at] === '"' ? 'a text that ends in its line' : 'a value')
  return end
}

/** Skips the members of an object, or the items of an array. */
function pastList(text: string, open: number, close: '}' | ']'): number {
  let at = pastBlanks(text, open + 1)
  if (text[at] === close) return at + 1
  for (;;) {
    at = pastValue(text, close === '}' ? pastName(text, at) : at)
    at = pastBlanks(text, at)
    if (text[at] === close) return at + 1
    expect(text, at, text[at] === ',', `, or ${close}`)
    at = pastBlanks(text, at + 1)
  }
}

function pastName(text: string, at: number): number {
  const end = pastMatch(text, at, STRING)
  expect(text, at, end > at, 'a name in double quotes')
  const colon = pastBlanks(text, end)
  expect(text, colon, text[colon] === ':', ':')
  return colon + 1
}
