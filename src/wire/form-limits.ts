/** Bounds of `readForm`. A form that goes beyond one is refused, never cut. */
export interface FormLimits {
  /** Parts of any kind. Default 200. */
  readonly parts: number
  /** Text fields. Default 100. */
  readonly fields: number
  /** Files. Default 20. */
  readonly files: number
  /** Bytes of one text field. Default 1,048,576. */
  readonly fieldBytes: number
  /** Bytes of one part's name. Default 200. */
  readonly nameBytes: number
  /** Bytes of one part's headers. Default 16,384. */
  readonly headerBytes: number
}

/** What holds where a caller of `readForm` says nothing else. */
export const DEFAULT_FORM_LIMITS: FormLimits = {
  parts: 200,
  fields: 100,
  files: 20,
  fieldBytes: 1024 * 1024,
  nameBytes: 200,
  headerBytes: 16 * 1024,
}
