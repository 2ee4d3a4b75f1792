import type { SiteSection } from './site-pages.ts'

/**
 * The list of all pages for language models (llmstxt.org): title, path and one line for each. The pages are next to it in
 * Markdown.
 */
export function llmsText(sections: readonly SiteSection[]): string {
  const lists = sections.map(({ title, pages }) => {
    const lines = pages.map((page) => `- [${page.title}](/${page.path}): ${page.summary}`)
    return `## ${title}\n\n${lines.join('\n')}\n`
  })
  return `# Signalbox\n\n> ${INTRODUCTION}\n\n${lists.join('\n')}`
}

const INTRODUCTION =
  'An AI gateway that you import into a Node backend: one OpenAI-compatible API in front of several model vendors, with ' +
  'keys, limits, balances and routing in the same process.'
