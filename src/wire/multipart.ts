/** A text field of a form. */
export interface FormField {
  readonly kind: 'field'
  readonly name: string
  readonly value: string
}

/** A file of a form. Its bytes are pieces of the body it came in, not copies. */
export interface FormFile {
  readonly kind: 'file'
  readonly name: string
  readonly filename: string
  /** As the caller wrote it; `application/octet-stream` when it wrote none. */
  readonly contentType: string
  readonly chunks: readonly Uint8Array[]
  readonly byteLength: number
}

/** One part of a form. */
export type FormPart = FormField | FormFile

/** A form in the order in which it was written. A list, because names may repeat and may be anything. */
export type Form = readonly FormPart[]
