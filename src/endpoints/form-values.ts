import type { Form, FormPart } from '../wire/multipart.ts'
import { invalidField } from './field-errors.ts'

/** The type of a text field of a form. */
export type FormValueKind = 'text' | 'integer' | 'number' | 'boolean'

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
  if (kind === 'text') return text
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
