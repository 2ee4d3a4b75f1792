/** Models without chat completions, dated ids included (OpenAI, "Models": the endpoints of each). */
const RESPONSES_ONLY =
  /^(?:o\d-pro|gpt-5(?:\.\d)?-(?:pro|codex(?:-\w+)?)|codex-mini-latest|o\d(?:-mini)?-deep-research|computer-use-preview)(?:-\d{4}-\d{2}-\d{2})?$/

/** Does OpenAI offer a model by `/v1/responses` only? */
export function isResponsesOnly(model: string): boolean {
  return RESPONSES_ONLY.test(model)
}
