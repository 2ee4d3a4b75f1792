import { asObject } from '../model/loose-json.ts'
import { refuseGemini } from './gemini-errors.ts'

type Json = Readonly<Record<string, unknown>>

/** A member by its name in camel case; the vendor takes it in snake case too. */
export function field(value: unknown, name: string): unknown {
  const object = asObject(value)
  return object[name] ?? object[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]
}

/** Refuses members that the vendor does not know, as its JSON reader does. */
export function checkKnownFields(object: Json, known: ReadonlySet<string>, place: string): void {
  for (const name of Object.keys(object)) {
    const camelName = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    if (known.has(camelName)) continue
    const at = place === '' ? '' : ` at '${place}'`
    refuseGemini(`Invalid JSON payload received. Unknown name "${name}"${at}: Cannot find field.`)
  }
}

/** The model and the method of a path: `/v1beta/models/{model}:{method}`. */
export function modelMethod(path: string): { model: string; method: string } | undefined {
  const match = /^\/v1(?:beta)?\/models\/([^/:]+):(\w+)$/.exec(path)
  return match === null ? undefined : { model: decodeURIComponent(match[1] ?? ''), method: match[2] ?? '' }
}

/** Models of the third generation and later sign their function calls and number them. */
export function signsThoughts(model: string): boolean {
  return Number(/^gemini-(\d+)/.exec(model)?.[1] ?? 0) >= 3
}
