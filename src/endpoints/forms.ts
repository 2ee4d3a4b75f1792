import type * as z from 'zod'
import type { Form, FormPart } from '../wire/write-form.ts'
import { invalidField } from './field-errors.ts'
import { type RequestPlaces, requestTexts, type TextPart } from './texts.ts'

/**
 * Returns the texts of a form's fields, as of a JSON body with the same members. A field has a number if it is repeated, has brackets
 * or is in `lists`. Files are left out.
 */
export function formTexts(form: Form, places: RequestPlaces, lists: readonly string[] = []): readonly TextPart[] {
  const numbered = numberedFields(form, lists)
  const fields: [string, string | string[]][] = []
  for (const [name, values] of valuesOf(form)) fields.push([name, numbered.has(name) ? values : (values[0] ?? '')])
  return requestTexts(Object.fromEntries(fields), places)
}

/** Returns the form with other texts, by the ids of {@link formTexts}. */
export function withFormTexts(form: Form, texts: ReadonlyMap<string, string>, lists: readonly string[] = []): Form {
  const numbered = numberedFields(form, lists)
  const seen = new Map<string, number>()
  return form.map((part): FormPart => {
    if (part.kind === 'file') return part
    const name = bareName(part.name)
    const number = seen.get(name) ?? 0
    seen.set(name, number + 1)
    const text = texts.get(numbered.has(name) ? `${name}[${number}]` : name)
    return text === undefined ? part : { ...part, value: text }
  })
}

/** Name of a field without the number that some clients append to the names of lists. */
function bareName(name: string): string {
  return name.replace(/\[\d{0,3}\]$/, '')
}

function valuesOf(form: Form): ReadonlyMap<string, string[]> {
  const values = new Map<string, string[]>()
  for (const part of form) {
    if (part.kind === 'file') continue
    const name = bareName(part.name)
    const list = values.get(name)
    if (list === undefined) values.set(name, [part.value])
    else list.push(part.value)
  }
  return values
}

function numberedFields(form: Form, lists: readonly string[]): ReadonlySet<string> {
  const numbered = new Set(lists)
  for (const [name, values] of valuesOf(form)) if (values.length > 1) numbered.add(name)
  for (const { name } of form) if (bareName(name) !== name) numbered.add(bareName(name))
  return numbered
}

/** Type of a text field of a form. An object is sent as JSON text, or as one field per member. */
type FormValueKind = 'text' | 'integer' | 'number' | 'boolean' | 'list' | 'object'

const KINDS_BY_TYPE: Readonly<Record<string, FormValueKind>> = { boolean: 'boolean', array: 'list', union: 'object' }

/** Returns the types of the members of a schema when they are sent as fields of a form. */
export function formFields(schema: z.ZodObject): ReadonlyMap<string, FormValueKind> {
  return new Map(Object.entries(schema.shape).map(([name, member]) => [name, formValueKind(member)]))
}

function formValueKind(schema: z.core.$ZodType): FormValueKind {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'optional' || def.type === 'nullable') return formValueKind(def.innerType)
  if (def.type === 'number') return 'format' in def ? 'integer' : 'number'
  return KINDS_BY_TYPE[def.type] ?? 'text'
}

const READERS = {
  integer: { pattern: /^-?\d{1,15}$/, expected: 'a whole number', read: Number },
  number: {
    pattern: /^-?(?:\d{1,15}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,2})?$/i,
    expected: 'a number',
    read: Number,
  },
  boolean: { pattern: /^(?:true|false)$/, expected: 'true or false', read: (text: string) => text === 'true' },
}

/**
 * Converts a text field to its value. Only unambiguous texts are accepted.
 * @throws GatewayError `invalid_request` naming the field.
 */
export function formValue(name: string, text: string, kind: FormValueKind): string | number | boolean {
  if (kind === 'text' || kind === 'list' || kind === 'object') return text
  const { pattern, expected, read } = READERS[kind]
  if (pattern.test(text)) return read(text)
  throw invalidField(name, `must be ${expected}`)
}

/**
 * Returns the form without empty file inputs, or the same object if there are none. For such inputs, browsers send a
 * part without file name and bytes (HTML standard, "Constructing the entry list").
 * @param isInput Whether a part of this name is a file input.
 */
export function withoutEmptyInputs(form: Form, isInput: (name: string) => boolean): Form {
  const isEmpty = (part: FormPart): boolean =>
    part.kind === 'file' && part.filename === '' && part.byteLength === 0 && isInput(part.name)
  return form.some(isEmpty) ? form.filter((part) => !isEmpty(part)) : form
}
