/** A setting that cannot be used; the text names it and says what it takes. Printed without a stack. */
export class SettingError extends Error {
  override readonly name = 'SettingError'
}
