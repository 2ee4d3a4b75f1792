/** Names that models.dev has for vendors which it does not call as the catalog does: vendor id → provider ids. */
export const MODELS_DEV_PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  gemini: ['google'],
  dashscope: ['alibaba'],
}
