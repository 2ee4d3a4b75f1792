const TITLE = '# Benchmark results'

/** The text of the file with one section replaced or added, in the order of `headings`. */
export function withSection(text, { heading, body, headings }) {
  const sections = new Map(
    text
      .split(/^## /m)
      .slice(1)
      .map((section) => {
        const end = section.indexOf('\n')
        return [section.slice(0, end), section.slice(end).trim()]
      }),
  )
  sections.set(heading, body)
  const written = headings.filter((known) => sections.has(known))
  return `${[TITLE, ...written.map((known) => `## ${known}\n\n${sections.get(known)}`)].join('\n\n')}\n`
}
