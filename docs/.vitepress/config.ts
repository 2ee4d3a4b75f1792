import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { defineConfig, type MarkdownRenderer } from 'vitepress'
import { headingAnchor } from './heading-anchor.ts'
import { siteLink } from './repository-files.ts'
import { ROOT, siteSections } from './site-pages.ts'

const sections = siteSections()

/** The site: every page of `docs` as it is; links that leave `docs` lead to pages that show the file. */
export default defineConfig({
  title: 'Signalbox',
  description: 'An AI gateway that you import into a Node backend.',
  lang: 'en-GB',
  markdown: { anchor: { slugify: headingAnchor }, config: rewriteLinks },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Guides', link: '/getting-started' },
      { text: 'API reference', link: '/api/index.html', target: '_self' },
    ],
    sidebar: sections.map(({ title, pages }) => ({
      text: title,
      collapsed: title === 'Decisions',
      items: pages.map((page) => ({ text: page.title, link: `/${page.path}` })),
    })),
  },
  /** Puts the Markdown that `llms.txt` names next to the pages made of it. */
  async buildEnd({ outDir }) {
    for (const { path } of sections.flatMap(({ pages }) => pages)) {
      await cp(join(ROOT, 'docs', path), join(outDir, path))
    }
  },
})

function rewriteLinks(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('repository-links', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null
      const link = href === null ? undefined : siteLink(href, env.relativePath)
      if (link !== undefined) token.attrSet('href', link)
    }
  })
}
