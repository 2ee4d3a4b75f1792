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
 * The value of a text field: only unambiguous texts are converted.
 * @throws GatewayError `invalid_request` naming the field.
 */
export function formValue(name: string, text: string, kind: FormValueKind): string | number | boolean {
  if (kind === 'text') return text
  const { pattern, expected, read } = READERS[kind]
  if (pattern.test(text)) return read(text)
  throw invalidField(name, `must be ${expected}`)
}

/**
 * The form without inputs of files in which nothing was chosen: browsers send a part without name and bytes for them (HTML standard,
 * "Constructing the entry list"). The same object if there is none.
 * @param isInput Is a part of this name such an input?
 */
export function withoutEmptyInputs(form: Form, isInput: (name: string) => boolean): Form {
  const isEmpty = (part: FormPart): boolean =>
    part.kind === 'file' && part.filename === '' && part.byteLength === 0 && isInput(part.name)
  return form.some(isEmpty) ? form.filter((part) => !isEmpty(part)) : form
}
