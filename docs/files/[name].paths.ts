import { linkedFiles } from '../.vitepress/repository-files.ts'

/** A page for each file outside of `docs` that a page links to. */
export default {
  paths: () => linkedFiles().map(({ name, content }) => ({ params: { name }, content })),
}
