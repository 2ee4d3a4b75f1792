import { readFileSync } from 'node:fs'
import { SettingError } from './setting-values.ts'

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

/** Position of the first invalid character of a JSON text. */
interface JsonFault {
  /** Line and column, counted from 1. */
  readonly line: number
  readonly column: number
  readonly expected: string
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
    if (!(fault instanceof FaultFound)) throw fault
    const { line, column, expected } = fault.fault
    return `line ${line}, column ${column}: expected ${expected}`
  }
  return 'it cannot be parsed'
}

class FaultFound extends Error {
  readonly fault: JsonFault

  constructor(fault: JsonFault) {
    super(fault.expected)
    this.fault = fault
  }
}

function expect(text: string, at: number, isRight: boolean, expected: string): void {
  if (isRight) return
  const lines = text.slice(0, at).split('\n')
  throw new FaultFound({ line: lines.length, column: (lines.at(-1) ?? '').length + 1, expected })
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
