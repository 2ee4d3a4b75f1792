/** A text field of a form. */
export interface FormField {
  readonly kind: 'field'
  readonly name: string
  readonly value: string
}

/** A file of a form. Its bytes are slices of the body, not copies. */
export interface FormFile {
  readonly kind: 'file'
  readonly name: string
  readonly filename: string
  /** Content type as the caller wrote it. Default `application/octet-stream`. */
  readonly contentType: string
  readonly chunks: readonly Uint8Array[]
  readonly byteLength: number
}

/** One part of a form. */
export type FormPart = FormField | FormFile

/** A form in its original order. A list, because names are arbitrary and may repeat. */
export type Form = readonly FormPart[]
